"""Waits of JAX and TensorFlow that go on long after every device is done: what the runtime does then, the recording does not show."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import LATE_RUNTIME, Finding
from stepscope.analysis.findings.profiler_doubt import withdraw
from stepscope.analysis.replay.plan import SPEEDS, Plan
from stepscope.registers.calibration.launches import LATE_WAIT_NS
from stepscope.registers.policy.findings import MAJORITY, WORTH_A_SENTENCE
from stepscope.units import duration

SILENT = "silent_ns_per_step"  # in the evidence
_IS_SILENT = (pl.col("cause") == "sync") & (pl.col("recorded_ns") > LATE_WAIT_NS)


def with_silence(case: Case, plan: Plan) -> Plan:
    """The plan, changed by a fix that surely removes of each such wait no more than handing on a value takes."""
    if not case.runs_programs:
        return plan
    beyond = _IS_SILENT
    share = (pl.col("recorded_ns") - LATE_WAIT_NS) / pl.col("recorded_ns")
    stays = case.plan.host.select(
        pl.when(beyond).then(pl.col(name) * share).otherwise(0).cast(pl.Int64).alias(name)
        for name in (*SPEEDS, "recorded_ns")
    )
    kept = [pl.max_horizontal(name, stays[name]).alias(name) for name in (*SPEEDS, "recorded_ns")]
    return replace(plan, host=plan.host.with_columns(kept))


def say_silence(case: Case, found: Finding) -> None:
    """Where most of what a finding owns is such silence, nothing is promised; where some of it is, that is said."""
    if not case.runs_programs:
        return
    late = case.plan.host.filter(_IS_SILENT)["recorded_ns"]
    ns = int((late - LATE_WAIT_NS).sum()) / max(1, len(case.lengths))
    if ns < WORTH_A_SENTENCE * case.step_ns:
        return
    found.evidence = {**found.evidence, SILENT: int(ns)}
    found.detail += f" For {duration(ns)} of that no device works, long after the last one was done: what the runtime waits for then was not recorded."
    if ns > MAJORITY * found.share * case.step_ns:
        case.changes.pop(found.code, None)
        withdraw(found)
        found.title = LATE_RUNTIME
        found.detail += " So nothing is promised."
