"""Steps on a CPU that wait for tf.data: what is left of them where its work goes, as from a cache or with data handed over as tensors.

The wait goes, and with it what the pipeline took from the step: cores, and the profiler's time for each of its events.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.batches.tf_data import TfData
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.promise import left_by_account
from stepscope.analysis.findings.spread import OF_CACHES, Spread
from stepscope.analysis.input_facts import InputFacts
from stepscope.registers.calibration.host_ops import GENERATOR_CALL_NS
from stepscope.registers.calibration.profiler import DISPATCH_LEFT_WITH_OPS_LOW
from stepscope.registers.policy.findings import MAJORITY
from stepscope.registers.policy.host_code import (
    BESIDE_PIPELINE_SAVES,
    CACHED_WORK_STAYS,
    RELIEF_COMES,
)
from stepscope.units import duration, percent

_CACHE = "Put .cache() behind the last .map() whose result is the same in every epoch, before .shuffle() and random changes: later epochs then read it from memory. What does not fit there is cached in a file, or decoded and resized once, before training."
_TENSORS = "Hand the data over as tensors instead of sample by sample: tf.data.Dataset.from_tensor_slices(arrays).batch(…), or a dataset of indices with one tf.gather for each batch. A generator that must stay should yield whole batches."


def left_of_pipeline(case: Case, owned_ns: float, pipeline: TfData | None, facts: InputFacts) -> Interval:
    """What is left of a step: of the work that can go with the wait for it, and of the other as far as prefetching hides it."""
    hidden = _left_if_hidden(case, owned_ns, facts)
    if pipeline is None or pipeline.caches:
        return hidden
    gone = _left_without(case, owned_ns, pipeline, facts)
    if pipeline.yields_samples:
        return _mix(gone, hidden, min(1.0, GENERATOR_CALL_NS / pipeline.python_call_ns))
    found = _mix(gone, hidden, pipeline.same_share)
    if pipeline.repeats or not pipeline.same_share:
        return found
    # Whether the records come again at all, or are too many to be kept, is not known.
    return Interval(found.low, (found.mid * hidden.mid) ** 0.5, hidden.high)


def spread_of_pipeline(pipeline: TfData | None) -> Spread | None:
    """That of work that goes as a whole; None for that of waits."""
    if pipeline is None or pipeline.caches:
        return None
    return OF_CACHES if pipeline.yields_samples or pipeline.same_share >= MAJORITY else None


def tell_of_pipeline(found: Finding, pipeline: TfData | None) -> None:
    """Says which of the pipeline's work can go, and how."""
    if pipeline is None or pipeline.caches:
        return
    if pipeline.yields_samples:
        each = duration(pipeline.python_call_ns)
        found.detail += f" A Python generator yields single samples: {pipeline.python_calls:.0f} calls of {each} in each step."
        found.fix = _TENSORS
    elif pipeline.same_share >= MAJORITY and pipeline.slowest is not None:
        name, share = pipeline.slowest
        which = (
            "Nothing random happens in the pipeline"
            if pipeline.same_share == 1
            else f"{percent(pipeline.same_share)} of the pipeline's work is the same whenever a record comes"
        )
        found.detail += f" {which}, and nothing is cached; {percent(share)} of its work is {name}."
        found.fix = _CACHE


def _left_if_hidden(case: Case, owned_ns: float, facts: InputFacts) -> Interval:
    """Where threads make batches ahead already, no wait goes if all cores are busy, and all of it where batches take less work."""
    if not (facts.maps_in_parallel and facts.prefetches):
        return left_by_account(case, owned_ns)
    share = min(1.0, owned_ns / case.step_ns)
    return Interval(1 - share, 1 - BESIDE_PIPELINE_SAVES * share, 1.0)


def _left_without(case: Case, owned_ns: float, pipeline: TfData, facts: InputFacts) -> Interval:
    """The step alone. The profiler may have taken its time from the pipeline, which then is faster in the job, while the step is not."""
    rest = max(0.0, case.step_ns - owned_ns)
    recorded = min(1.0, rest / case.step_ns)
    least, most = sorted((recorded, min(rest / case.basis_ns, 1 - MAJORITY * (1 - recorded))))
    relief = _relief(case, rest, pipeline, facts)
    return Interval(
        least * relief,
        (least * most) ** 0.5 * relief**RELIEF_COMES,
        most + CACHED_WORK_STAYS * (1 - most),
    )


def _mix(gone: Interval, stays: Interval, share: float) -> Interval:
    """Where a share of the work goes, and the other stays."""
    ends = ((gone.low, stays.low), (gone.mid, stays.mid), (gone.high, stays.high))
    return Interval(*(share * one + (1 - share) * other for one, other in ends))


def _relief(case: Case, rest_ns: float, pipeline: TfData, facts: InputFacts) -> float:
    """The rest of a step with all cores for itself, as a share of it beside the pipeline's threads, at best.

    Ops use as many threads as there are cores; Python uses one, and shares it with a generator. What the profiler takes of Python
    and dispatch no longer hides in waits that grow shorter by as much.
    """
    if not rest_ns:
        return 1.0
    cores = facts.cores or 1
    busy = pipeline.busy if facts.cores else 0.0
    computing = min(rest_ns, case.per_step(case.slices.filter(pl.col("part") == "host_compute")))
    share = computing / rest_ns
    alone = 1 / (1 + busy) if pipeline.python_calls else min(1.0, cores / (1 + busy))
    return share * cores / (cores + busy) + (1 - share) * alone * DISPATCH_LEFT_WITH_OPS_LOW
