"""The first steps of the recording are slower than the others, or launch kernels for the first time."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.profiler_doubt import withdraw
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.rules.steps.step_outliers import are_first, slow_steps
from stepscope.analysis.host.kernel_loads import loading_launches
from stepscope.names import short_name
from stepscope.registers.levels import SLOW_STEP_FEWEST
from stepscope.registers.policy.findings import FIRST_CALL_TIMES, MAJORITY, WORTH_A_FINDING
from stepscope.units import duration

_OF_HOST = ("dispatch", "python", "allocator", "compile")


def find(case: Case) -> Finding | None:
    """The same as slow steps, but nothing to save in the others: the first ones are paid once in a job."""
    found = slow_steps(case) if are_first(case) else None
    if found is None:
        return _loads(case) or _first_calls(case)
    fix = RULE.fix_for(case.trace.info.framework)
    return RULE.finding(found.detail, fix, evidence=found.evidence, share=found.share)


def _loads(case: Case) -> Finding | None:
    """Kernels that are loaded in the few steps that were recorded: what a step takes without that was not."""
    loads = loading_launches(case.trace)
    owned = case.free(pl.col("named_by").is_in(loads.implode()))
    ns = case.per_step(owned)
    if ns < WORTH_A_FINDING * case.step_ns:
        return None
    detail = f"{case.of_step(ns)} is the first launch of kernels, whose code is loaded then."
    return RULE.finding(
        detail,
        RULE.fix_for(case.trace.info.framework),
        evidence={"names": case.top_names(owned)},
        share=round(ns / case.step_ns, 4),
    )


def _first_calls(case: Case) -> Finding | None:
    """What the host does many times longer in the first step than in any later one: caches are filled, memory is taken."""
    steps = case.lengths["step"]
    if len(steps) < SLOW_STEP_FEWEST:
        return None
    of_host = case.free(pl.col("part").is_in(_OF_HOST), pl.col("name").is_not_null())
    by_step = of_host.group_by("name", "step").agg(pl.col("ns").sum())
    is_first = pl.col("step") == steps[0]
    by_name = by_step.group_by("name").agg(
        first_ns=pl.col("ns").filter(is_first).sum(),
        later_ns=pl.col("ns").filter(~is_first).max(),
        later=(~is_first).sum(),
    )
    # What comes in the first step alone may be anything; what comes in all of them is the step's.
    in_all = by_name.filter(
        pl.col("later") == len(steps) - 1, pl.col("first_ns") >= FIRST_CALL_TIMES * pl.col("later_ns")
    )
    owned = of_host.filter(is_first, pl.col("name").is_in(in_all["name"].implode()))
    ns = case.per_step(owned)
    if owned.is_empty() or ns < WORTH_A_FINDING * case.step_ns:
        return None
    case.claim(owned)
    longest, first, later = (
        in_all.sort("first_ns").select(pl.col("name").cast(pl.String), "first_ns", "later_ns").row(-1)
    )
    return RULE.finding(
        f"In step {steps[0]}, {short_name(longest)} takes {duration(first)}, and no more than {duration(later)} in any later step. "
        f"Such first calls are {case.of_step(ns)}.",
        RULE.fix_for(case.trace.info.framework),
        evidence={"steps": [steps[0]], "names": case.top_names(owned)},
        share=round(ns / case.step_ns, 4),
    )


def is_cold(case: Case) -> bool:
    """Whether the only step that was recorded mostly loads kernels: then all else that the host does in it is done for the first time."""
    share = sum(found.share for found in case.earlier if found.code == RULE.code)
    return len(case.lengths) == 1 and share > MAJORITY


def withdraw_cold(case: Case) -> None:
    """What was found in a step of that kind promises nothing for those that come after it."""
    if not is_cold(case):
        return
    for found in case.earlier:
        if found.class_ == "time" and found.speedup.high > 1:
            withdraw(found)
            case.changes.pop(found.code, None)
            found.detail += " Only one step was recorded, and it loads its kernels, so nothing is promised."


RULE: Rule[Case] = Rule(
    code="warm-up",
    title="The first steps of the recording are warm-up",
    turn=40,
    class_="advice",
    page="steps",
    owns="the same, if only the first one to three steps of the recording are slow; calls of 1 ms or longer that launch a kernel while no device works, since they load its code first; what the host does ten times longer in the first step than in any later one",
    change="the job pays for them once; of a single step that mostly loads kernels, no finding promises anything",
    fix={
        ANY: "Record later to judge the usual step: stepscope.schedule(skip=10, active=5), or leave those steps out with --step. Compilation, autotuning and caches are paid once in a job.",
    },
    find=find,
)
