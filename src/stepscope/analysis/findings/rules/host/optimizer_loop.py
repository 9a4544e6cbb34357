"""The optimizer updates parameters one by one."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.registers.calibration.kernels import (
    FUSED_OPTIMIZER_LAUNCHES,
    FUSED_OPTIMIZER_TRAFFIC_LEAST,
    FUSED_OPTIMIZER_TRAFFIC_MOST,
)
from stepscope.registers.policy.findings import OPTIMIZER_KERNELS, WORTH_A_FINDING
from stepscope.trace.lookup import events_named
from stepscope.trace.scopes import at_or_inside


def find(case: Case) -> Finding | None:
    """Launches, and many passes over the same memory."""
    inside = in_optimizer(case.trace.events)
    links = case.trace.links.filter(pl.col("why") == "launch")
    mine = links.filter(inside.gather(links["from"]))["to"]
    kernels_per_step = len(mine) / case.step_count
    dispatch = case.free(pl.col("part") == "dispatch")
    dispatch = dispatch.filter(inside.gather(dispatch["named_by"]).fill_null(False))
    ns = case.per_step(dispatch)
    # A fused or foreach optimizer launches a few kernels for all parameters together.
    if kernels_per_step < OPTIMIZER_KERNELS or ns < WORTH_A_FINDING * case.step_ns:
        return None
    compute = case.free(pl.col("part") == "compute", pl.col("named_by").is_in(mine.implode()))
    owned = pl.concat([dispatch, compute])
    launched = case.plan.with_host(pl.lit(host_time(case)), FUSED_OPTIMIZER_LAUNCHES)
    updates = pl.col("event").is_in(mine.implode())
    changed = Change(
        launched.with_device(updates, FUSED_OPTIMIZER_TRAFFIC_MOST),
        launched.with_device(updates, FUSED_OPTIMIZER_TRAFFIC_LEAST),
    )
    detail = (
        f"{case.of_step(case.per_step(owned))} goes into the optimizer, which launches {kernels_per_step:,.0f} small "
        f"kernels per step."
    )
    return timed(case, RULE, owned, changed, detail, {"kernels_per_step": round(kernels_per_step)})


def host_time(case: Case) -> pl.Series:
    """For every row of the plan's host time whether it is the optimizer's."""
    event = case.plan.host["event"]
    return event.is_not_null() & in_optimizer(case.trace.events).gather(event).fill_null(False)


def in_optimizer(events: pl.DataFrame) -> pl.Series:
    """For every event whether it is inside the optimizer's step."""
    return at_or_inside(events, is_step_of_optimizer(events))


def is_step_of_optimizer(events: pl.DataFrame) -> pl.Series:
    """Which events are steps of an optimizer; clearing gradients is none."""
    clears = events_named(events, lambda names: names.str.contains("zero_grad", literal=True))
    return (events["role"] == "optimizer").fill_null(False) & ~clears


RULE: Rule[Case] = Rule(
    code="optimizer-loop",
    title="The optimizer launches many small kernels",
    turn=120,
    page="ops",
    owns="launches and kernels inside an optimizer that launches more than 100 kernels per step",
    change="5 % of the host's time and 18 to 45 % of the device's remain, as in a fused optimizer",
    fix={
        "pytorch": "Update all parameters at once: torch.optim.AdamW(…, fused=True) or foreach=True.",
        ANY: "Update all parameters in one fused operation.",
    },
    find=find,
)
