"""Batches that were ready when the recording began: workers fill their queue while a profiler starts, and the first steps wait for
nothing. How long a step waits for them in the job, its unprofiled length says."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from stepscope.analysis.basis import RECORDED, Basis
from stepscope.analysis.input_facts import input_facts
from stepscope.analysis.replay.plan import SPEEDS, USUAL, Plan
from stepscope.registers.calibration.profiler import MOST_LACKING
from stepscope.registers.policy.findings import WORTH_A_FINDING
from stepscope.trace.trace import Trace


def with_whole_waits(plan: Plan, trace: Trace, basis: Basis) -> Plan:
    """The plan; its waits for workers are longer by what it lacks of the unprofiled step, if that is more than a recording lacks else.

    Only where the recorded steps waited for them too: then the queue ran empty, and in the job it never fills.
    """
    if basis.source == RECORDED or plan.items.is_empty():
        return plan
    is_input = pl.col("cause") == "input"
    steps = max(1, int(plan.items["last"].sum()))
    waited = int(plan.host.filter(is_input)[USUAL].sum()) / steps
    if waited < WORTH_A_FINDING * basis.ns / MOST_LACKING:
        return plan
    played = plan.step_ns()
    if basis.ns < MOST_LACKING * played or not input_facts(trace).has_workers:
        return plan
    longer = 1 + (basis.ns - played) / waited
    stretched = [
        pl.when(is_input).then((pl.col(name) * longer).cast(pl.Int64)).otherwise(name).alias(name)
        for name in SPEEDS
    ]
    return replace(plan, host=plan.host.with_columns(stretched))
