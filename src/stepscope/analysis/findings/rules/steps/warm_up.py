"""The first steps of the recording are slower than the others, or launch kernels for the first time."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.profiler_doubt import withdraw
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.rules.steps.step_outliers import are_first, slow_steps
from stepscope.analysis.host.kernel_loads import loading_launches
from stepscope.registers.policy.findings import MAJORITY, WORTH_A_FINDING


def find(case: Case) -> Finding | None:
    """The same as slow steps, but nothing to save in the others: the first ones are paid once in a job."""
    found = slow_steps(case) if are_first(case) else None
    if found is None:
        return _loads(case)
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
    owns="the same, if only the first one to three steps of the recording are slow; calls of 1 ms or longer that launch a kernel while no device works, since they load its code first",
    change="the job pays for them once; of a single step that mostly loads kernels, no finding promises anything",
    fix={
        ANY: "Record later to judge the usual step: stepscope.schedule(skip=10, active=5), or leave those steps out with --step. Compilation, autotuning and caches are paid once in a job.",
    },
    find=find,
)
