"""User code runs while the device has nothing to do."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.basis import is_broken
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.promise import of_part, saving
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.rules.host.eager_execution import by_framework
from stepscope.registers.policy.findings import DOMINANT_FUNCTION, WORTH_A_FINDING


def find(case: Case) -> Finding | None:
    """Without a device, user code is what computes, but one function may be most of the step."""
    if case.device is None:
        return _find_dominant(case)
    others = by_framework(case)
    owned = case.free(pl.col("part") == "python", ~pl.col("slice").is_in(others["slice"].implode()))
    named = others["named_by"].unique().implode()
    changed = (pl.col("cause") == "python") & ~pl.col("named_by").is_in(named)
    return of_part(case, RULE, owned, lambda: case.plan.with_host(changed), WORTH_A_FINDING)


def _find_dominant(case: Case) -> Finding | None:
    """How much faster the function or op can become is unknown, so that only the bound is given."""
    computing = case.free(pl.col("part").is_in(["python", "host_compute"]), pl.col("name").is_not_null())
    names = case.top_names(computing, 1)
    if is_broken(case.trace) or not names or names[0]["ns_per_step"] < DOMINANT_FUNCTION * case.step_ns:
        return None
    owned = computing.filter(pl.col("name").cast(pl.String) == names[0]["name"])
    ns = case.per_step(owned)
    case.claim(owned)
    at_best = Interval(1 - ns / case.step_ns, 1.0, 1.0)
    return saving(case, RULE, ns, at_best, f"{case.of_step(ns)} in {names[0]['name']}.", {"names": names})


RULE: Rule[Case] = Rule(
    code="host-python",
    title="The device waits for Python code",
    turn=110,
    title_without_device="One function takes most of the step",
    owns="`python`; without a device, the function or op that takes half of the step or more",
    change="your code between launches takes no time; without a device nothing, so that only the bound is given",
    fix={
        ANY: "This code runs while the device has nothing to do. Move it out of the step, vectorise it, or do it in the background.",
    },
    fix_without_device={
        ANY: "Make this function faster, or call it less often: vectorise it, compile it, use more cores, or keep its results. The rest of the step matters less.",
    },
    find=find,
)
