"""Communication that nothing hides."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.registers.policy.findings import (
    COLLECTIVE_LEFT_MOST,
    WORTH_A_FINDING,
)


def find(case: Case) -> Finding | None:
    """Communication that nothing hides."""
    owned = case.free(pl.col("part").is_in(["collective", "host_collective"]))
    ns = case.per_step(owned)
    if ns < WORTH_A_FINDING * case.step_ns:
        return None
    work = case.trace.events.filter(pl.col("role") == "collective")["id"].implode()
    mine, on_host = pl.col("event").is_in(work), pl.col("cause") == "host_collective"
    changed = Change(
        *(case.plan.with_device(mine, left).with_host(on_host, left) for left in (COLLECTIVE_LEFT_MOST, 0.0))
    )
    detail = f"{case.of_step(ns)} is communication that no computation overlaps."
    return timed(case, RULE, owned, changed, detail)


RULE: Rule[Case] = Rule(
    code="exposed-collective",
    title="The device waits for communication",
    title_without_device="The step waits for communication",
    turn=170,
    page="collectives",
    owns="`collective`, `host_collective`",
    change="half to all of it is hidden",
    fix={
        "pytorch": "Overlap communication with the backward pass (DDP does unless buckets are too large: try bucket_cap_mb=10, its default is 25; FSDP: forward_prefetch, backward_prefetch), accumulate gradients, or compress them.",
        ANY: "Overlap communication with computation, or communicate less often.",
    },
    find=find,
)
