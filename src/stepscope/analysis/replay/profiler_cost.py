"""What the profiler itself adds to the host's time: a cost per recorded event, by its kind.

The costs are measured on a real GPU (benchmarks/diagnosis/calibrate.py): steps that only launch tiny kernels are as long
as the host makes them, and were timed with and without the profiler for several mixes of ops, launches and Python
frames. They are rounded medians for one host; another host is faster or slower, so that a correction by them is an
estimate. Where the capture kept the lengths of unprofiled steps, those decide how much is taken off.
"""

from __future__ import annotations

import polars as pl

from stepscope.native.spans import segments as native
from stepscope.registers.calibration.launches import BLOCKED_LAUNCH_NS
from stepscope.registers.calibration.profiler import (
    FASTEST_HOST,
    PROFILED_ANNOTATION_COST_NS,
    PROFILED_JAX_CALL_COST_NS,
    PROFILED_LAUNCH_COST_NS,
    PROFILED_LAUNCH_NS,
    PROFILED_MEMORY_COST_NS,
    PROFILED_OP_COST_NS,
    PROFILED_PYTHON_COST_NS,
    PROFILED_RUNTIME_COST_NS,
    PROFILED_SPAN_COST_NS,
    SLOWEST_HOST,
)
from stepscope.trace.columns import buffer, series
from stepscope.trace.frames import take_largest
from stepscope.trace.schema import KINDS
from stepscope.trace.trace import Trace

_COST_NS = {
    "op": PROFILED_OP_COST_NS,
    "runtime": PROFILED_RUNTIME_COST_NS,
    "python": PROFILED_PYTHON_COST_NS,
    "memory": PROFILED_MEMORY_COST_NS,
    "annotation": PROFILED_ANNOTATION_COST_NS,
    "span": PROFILED_SPAN_COST_NS,
}


def _is_generator(names: pl.Series) -> pl.Series:
    """Judged once for each distinct name."""
    distinct = names.unique().drop_nulls()
    resumed = distinct.filter(distinct.cast(pl.String).str.contains("<genexpr>", literal=True))
    return names.is_in(resumed.implode())


def _in_order(events: pl.DataFrame) -> bool:
    """By track, and by start on each; most traces are so already."""
    if not events["track"].is_sorted():
        return False
    same = events["track"] == events["track"].shift(1)
    return not bool((same & (events["start_ns"] < events["start_ns"].shift(1))).any())


def _slowness(launches: pl.Series) -> float:
    """How slow this host is, told by what a launch takes, as a multiple of the one the costs were measured on."""
    usual = launches.filter(launches < BLOCKED_LAUNCH_NS).median()
    if usual is None:
        return 1.0
    return min(max(float(usual) / PROFILED_LAUNCH_NS, FASTEST_HOST), SLOWEST_HOST)


class ProfilerCost:
    """Answers how much of a stretch of a thread's time the profiler took."""

    def __init__(self, trace: Trace) -> None:
        events = trace.events
        kind = events["kind"].to_physical().cast(pl.UInt32)
        cost = pl.Series([_COST_NS.get(name, 0) for name in KINDS], dtype=pl.Int64).gather(kind)
        if trace.info.framework == "jax":
            calls = (events["kind"] == "python") & ~_is_generator(events["name"])
            cost = pl.select(pl.when(calls).then(PROFILED_JAX_CALL_COST_NS).otherwise(cost)).to_series()
        launches = trace.links.filter(pl.col("why") == "launch")["from"].unique()
        cost = cost.scatter(launches, PROFILED_LAUNCH_COST_NS)
        if trace.info.framework == "pytorch":
            cost = (cost * _slowness(events["dur_ns"].gather(launches))).cast(pl.Int64)
        events = events.select("track", "start_ns", cost=cost)
        if not _in_order(events):
            events = events.sort("track", "start_ns")
        self._start = events["start_ns"]
        self._sum = pl.concat([pl.Series([0]), events["cost"].cum_sum()])
        count = take_largest(trace.tracks["id"]) + 2
        self._first = (
            events["track"]
            .search_sorted(pl.int_range(count, dtype=pl.UInt32, eager=True), side="left")
            .cast(pl.UInt32)
        )

    def added_ns(self, track: pl.Series, start: pl.Series, end: pl.Series) -> pl.Series:
        """For each stretch the cost of the events that begin in it."""
        added: pl.Series = self._before(track, end) - self._before(track, start)
        return added

    def _before(self, track: pl.Series, time: pl.Series) -> pl.Series:
        rows = native.next_start(buffer(self._first), buffer(self._start), buffer(track), buffer(time))
        row = series("row", rows, pl.UInt32)
        # Nothing follows on that track: everything on it came before.
        last = self._first.gather(track + 1)
        return self._sum.gather(pl.select(pl.when(row != native.NONE).then(row).otherwise(last)).to_series())
