"""Batches of which now and then one takes longer to make: a shard is read, or Python looks for garbage among all of its objects,
as it does again and again where each batch is made of thousands of them. A fix that makes them elsewhere spares the step this, too."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

from stepscope.analysis.findings.steps.times import StepTimes
from stepscope.analysis.replay.plan import SPEEDS, USUAL, Plan
from stepscope.analysis.steps.batch_times import are_mostly_batches, share_of_batches
from stepscope.analysis.steps.rhythm import numbered_lengths
from stepscope.analysis.steps.usual import outliers_of_few
from stepscope.registers.policy.findings import MAJORITY
from stepscope.statistics.slow_steps import slow_limit
from stepscope.trace.trace import Trace


def find_slow_batches(steps: StepTimes) -> float:
    """What slow steps that come back add to the mean step, if that is time of making batches; else 0.

    That is what the slow ones show that were recorded: too few by themselves, but the steps around them show that some are
    slow. If none was recorded, it is where batches take most of the usual steps, and as often as steps are slow, Python looks
    for garbage among all objects: how often it does depends on how many are made.
    """
    rhythm = steps.rhythm
    if rhythm is None or len(steps.outliers) or steps.has_restarts:
        return 0.0
    extra = (rhythm.slow_ns - rhythm.usual_ns) / rhythm.period
    slow = outliers_of_few(steps.lengths)
    if slow.is_empty():
        return extra if are_mostly_batches(steps.batch_times) and is_garbage(steps.trace) else 0.0
    return extra * share_of_batches(steps.batch_times, slow["step"])


def with_slow_batches(plan: Plan, extra_ns: float, lacking_ns: float) -> Plan:
    """The plan; making batches takes longer by that, or by what the plan lacks of the unprofiled step if that is less."""
    is_input = pl.col("cause") == "input"
    steps = max(1, int(plan.items["last"].sum()))
    made = int(plan.host.filter(is_input)[USUAL].sum()) / steps
    added = min(extra_ns, lacking_ns)
    if made <= 0 or added <= 0:
        return plan
    longer = [
        pl.when(is_input).then((pl.col(name) * (1 + added / made)).cast(pl.Int64)).otherwise(name).alias(name)
        for name in SPEEDS
    ]
    return replace(plan, host=plan.host.with_columns(longer))


def is_garbage(trace: Trace) -> bool:
    """Whether Python looked at all of its objects about as often as unprofiled steps were slow."""
    lengths = numbered_lengths(trace)
    limit = slow_limit(list(lengths.values()))
    noted = trace.info.capture.get("unprofiled")
    runs = [run for run in noted.values() if isinstance(run, dict)] if isinstance(noted, dict) else []
    collections = sum(_whole(run.get("full_collections")) for run in runs)
    slow = sum(_is_inside(step, run) for step, length in lengths.items() if length > limit for run in runs)
    return slow > 0 and MAJORITY * collections <= slow <= collections / MAJORITY and collections > 1


def _is_inside(step: int, run: dict[str, Any]) -> bool:
    first = _whole(run.get("first"))
    return first <= step < first + _whole(run.get("count"))


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
