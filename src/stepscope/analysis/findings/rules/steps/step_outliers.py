"""Steps that take much longer than the others."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.mostly import mostly_in
from stepscope.analysis.findings.profiler_doubt import withdraw
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.steps.slow_batches import is_garbage
from stepscope.analysis.findings.steps.times import StepTimes
from stepscope.analysis.host.functions import functions_of_slow_steps
from stepscope.analysis.input_facts import input_facts
from stepscope.names import short_name
from stepscope.registers.policy.findings import (
    ACCOUNT_SAVES_LEAST,
    LONGEST_WORTH_NAMING,
    MAJORITY,
    NAMED_STEPS,
    TOP_NAMES,
    WARM_UP_STEPS,
    WORTH_A_FINDING,
)
from stepscope.trace.frames import take_largest, take_mean, take_median
from stepscope.units import duration, percent

_INFERRED = " The steps are inferred from what repeats: a long one may be other work, or several steps in one, so nothing is promised."
_SAYS_GARBAGE = " As often, Python looks for garbage among all of its objects."
_FIX_OF_GARBAGE = " Make fewer objects in Python in each step, or call gc.collect() and gc.freeze() once before the loop, so that objects of libraries are not looked at again."


def find(case: Case) -> Finding | None:
    """A finding, unless only the first steps are slow: that is warm-up."""
    if case.lacks_slow_steps:
        return _not_recorded(case)
    return None if are_first(case) else slow_steps(case)


def _not_recorded(case: Case) -> Finding | None:
    """What is known of slow steps that come back, where the recording holds none of them."""
    rhythm = case.recorded.rhythm
    if rhythm is None:
        return None
    extra = rhythm.slow_ns - rhythm.usual_ns
    workers = (
        " Where a DataLoader starts its workers again for each epoch, persistent_workers=True keeps them."
        if input_facts(case.trace).has_workers
        else ""
    )
    garbage = is_garbage(case.trace)
    return RULE.finding(
        f"Of the unprofiled steps one in {rhythm.period} takes {duration(rhythm.slow_ns)} where the others take {duration(rhythm.usual_ns)}: "
        f"{percent(extra / rhythm.period / rhythm.mean_ns)} of the job's time. None of them was recorded, so nothing is promised.{_SAYS_GARBAGE if garbage else ''}",
        f"Record {rhythm.period} steps or more, so that one of the slow ones is among them.{_FIX_OF_GARBAGE if garbage else workers}",
        evidence={
            "period": rhythm.period,
            "slow_ns": round(rhythm.slow_ns),
            "usual_ns": round(rhythm.usual_ns),
        },
    )


def slow_steps(case: Case) -> Finding | None:
    """What steps that take much longer than the others cost, if that is enough to show."""
    steps = case.recorded
    slow = steps.outliers
    if len(slow) and len(steps.restarts) == len(slow):
        return None  # the loader's: input-bound
    median = take_median(steps.lengths["ns"])
    mean = take_mean(steps.lengths["ns"])
    extra = int((slow["ns"] - int(median)).sum() / max(1, len(steps.lengths))) if len(slow) else 0
    if not mean or extra < WORTH_A_FINDING * mean:
        return None
    inside = steps.slices_in(slow["step"]).filter(~pl.col("part").is_in(["compute"]))
    names = case.top_names(inside, steps=steps.usual_count)
    called = _called_in_slow_steps(steps)
    mostly = mostly_in(names, int(inside["ns"].sum()) / steps.usual_count)
    share = extra / mean
    gain = case.gain(Interval(1 - share, 1 - share, 1 - ACCOUNT_SAVES_LEAST * share), of_all=True)
    mostly = (
        f", in which {short_name(called[0]['name'])} runs, and hardly in the others" if called else mostly
    )
    found = RULE.finding(
        f"{_length_of(slow)} where the median step takes {duration(median)}{mostly}.",
        RULE.fix_for(case.trace.info.framework),
        evidence={"steps": slow["step"].to_list(), "names": called or names, "median_ns": int(median)},
        share=round(extra / mean, 4),
        saves_ns_per_step=gain.saves_ns,
        speedup=gain.speedup,
        left_ns_per_step=gain.left_ns,
    )
    if steps.steps.source == "inferred":
        withdraw(found)
        found.detail += _INFERRED
    return found


def _called_in_slow_steps(steps: StepTimes) -> list[dict[str, Any]]:
    """Functions that run in the slow steps alone, with what they take of each, where that explains most of it."""
    found = functions_of_slow_steps(steps.trace, steps.steps.host, steps.outliers["step"])
    longer = take_mean(steps.outliers["ns"]) - take_median(steps.lengths["ns"])
    alone = found.filter(pl.col("only_slow"), pl.col("extra_ns") >= MAJORITY * longer)
    share = len(steps.outliers) / max(1, len(steps.lengths))
    rows = alone.head(TOP_NAMES).select("name", "extra_ns").iter_rows()
    return [{"name": name, "ns_per_step": int(ns * share)} for name, ns in rows]


def _length_of(slow: pl.DataFrame) -> str:
    numbers = slow["step"].to_list()
    listed = ", ".join(map(str, numbers[:NAMED_STEPS])) + ("…" if len(numbers) > NAMED_STEPS else "")
    many = len(numbers) > 1
    average, longest = take_mean(slow["ns"]), float(take_largest(slow["ns"]))
    at_most = f" and {duration(longest)} at most" if many and longest > LONGEST_WORTH_NAMING * average else ""
    return (
        f"Step{'s' if many else ''} {listed} took {duration(average)}{' on average' if many else ''}{at_most}"
    )


def are_first(case: Case) -> bool:
    """Whether the slow steps are the few that the recording begins with, of many."""
    slow = case.recorded.outliers["step"]
    first = case.recorded.lengths.sort("step")["step"].head(len(slow))
    return len(first) <= WARM_UP_STEPS and set(first) == set(slow)


RULE: Rule[Case] = Rule(
    code="step-outliers",
    title="Some steps are much slower than the others",
    turn=30,
    page="steps",
    owns="the time of slow steps beyond the median",
    change="they take as long as the median step. Nothing is promised where the steps are inferred, not marked",
    fix={
        ANY: "Look at what the slow steps do that the others do not: checkpoints, evaluation, garbage collection, a cold cache.",
    },
    find=find,
)
