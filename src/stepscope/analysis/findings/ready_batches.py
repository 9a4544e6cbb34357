"""Batches that were ready when the recording began: workers fill their queue while a profiler starts, and the first steps wait for
nothing. How long a step waits for them in the job, its unprofiled length says."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import polars as pl

from stepscope.analysis.basis import RECORDED, Basis
from stepscope.analysis.input_facts import InputFacts, input_facts
from stepscope.analysis.replay.plan import SPEEDS, USUAL, Plan
from stepscope.analysis.steps.rhythm import Rhythm, lengths_around
from stepscope.registers.calibration.profiler import MOST_LACKING
from stepscope.registers.policy.findings import MAJORITY, WORTH_A_FINDING
from stepscope.statistics.slow_steps import slow_limit
from stepscope.trace.trace import Trace


def with_whole_waits(plan: Plan, trace: Trace, basis: Basis, rhythm: Rhythm | None = None) -> Plan:
    """The plan; its waits for workers are longer by what it lacks of the unprofiled step, if that is more than a recording lacks else.

    Only where the recorded steps waited for them too: then the queue ran empty, and in the job it never fills. Or where the
    unprofiled steps show that batches come in bursts, and a few recorded steps may have been those that find one.
    """
    if basis.source == RECORDED or plan.items.is_empty():
        return plan
    is_input = pl.col("cause") == "input"
    steps = max(1, int(plan.items["last"].sum()))
    waited = int(plan.host.filter(is_input)[USUAL].sum()) / steps
    played = plan.step_ns()
    if not waited or basis.ns < MOST_LACKING * played:
        return plan
    facts = input_facts(trace)
    ran_empty = waited >= WORTH_A_FINDING * basis.ns / MOST_LACKING
    if not facts.has_workers or not (ran_empty or come_in_bursts(trace, facts, rhythm, basis.ns - played)):
        return plan
    longer = 1 + (basis.ns - played) / waited
    stretched = [
        pl.when(is_input).then((pl.col(name) * longer).cast(pl.Int64)).otherwise(name).alias(name)
        for name in SPEEDS
    ]
    return replace(plan, host=plan.host.with_columns(stretched))


def come_in_bursts(trace: Trace, facts: InputFacts, rhythm: Rhythm | None, lacking_ns: float) -> bool:
    """Whether most of what a recording lacks is in single long unprofiled steps, as where all workers make a batch at a time:
    a step waits for the first of these, and the next ones find theirs.

    Long steps that come back at another distance than the number of workers have a cause of their own.
    """
    if rhythm is not None and not is_of_workers(facts, rhythm):
        return False
    lengths = lengths_around(trace)
    limit = slow_limit(lengths)
    longer = sum(each - median(lengths) for each in lengths if each > limit)
    return longer > MAJORITY * lacking_ns * len(lengths) if lengths else False


def is_of_workers(facts: InputFacts, rhythm: Rhythm) -> bool:
    """Whether as many steps as there are workers pass from one slow step to the next: each has made one batch by then."""
    return bool(facts.has_workers) and rhythm.period == facts.workers
