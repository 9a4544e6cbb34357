"""The profiler's own start and stop, which are never part of a step."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import polars as pl

from stepscope.trace.judged_texts import contains
from stepscope.trace.lookup import names_of
from stepscope.trace.trace import Trace

# Frames and calls that begin or end a recording; `profiler.step` between two steps is not among them.
_STARTS_OR_STOPS = (
    r"^\$profiler\.py:\d+ (start_trace|stop_trace|start|stop)$"
    r"|^torch/profiler/profiler\.py\(\d+\): (start|stop|start_trace|stop_trace|prepare_trace|__enter__|__exit__)$"
    r"|^torch/autograd/profiler\.py\(\d+\): _(start|stop|prepare)_trace$"
    r"|^tensorflow/python/profiler/profiler_v2\.py\(\d+\): (start|stop)$|^\$profiler_v2\.py:\d+ (start|stop)$"
    r"|^ProfilerSession::|^<built-in (function|method) _(enable|disable|prepare)_profiler"
)


def profiler_calls(trace: Trace) -> pl.DataFrame:
    """start_ns, end_ns of the calls that start or stop the profiler, in time order; those inside another are left out."""
    names = names_of(trace.events)
    own = names.filter(contains(names.cast(pl.String), _STARTS_OR_STOPS))
    if own.is_empty():
        return pl.DataFrame(schema={"start_ns": pl.Int64, "end_ns": pl.Int64})
    found = trace.events.filter(
        pl.col("name").is_in(own.implode()) & pl.col("kind").is_in(["python", "runtime", "span", "op"])
    ).select("start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns"))
    ordered = found.sort("start_ns", "end_ns", descending=[False, True])
    reached = pl.col("end_ns").cum_max().shift(1, fill_value=-(2**62))
    return ordered.filter((pl.col("end_ns") > reached) & (pl.col("end_ns") > pl.col("start_ns")))


def cut_off(spans: pl.DataFrame, calls: pl.DataFrame, work: pl.DataFrame) -> pl.DataFrame:
    """The spans without the profiler's start and stop: of the two sides of such a call the one that launches more."""
    if calls.is_empty() or spans.is_empty():
        return spans
    starts, ends = spans["start_ns"].to_list(), spans["end_ns"].to_list()
    launched = _Launched(work)
    for begin, end in calls.iter_rows():
        for row in range(bisect_right(ends, begin), len(ends)):
            if starts[row] >= end:
                break
            before = (launched.within(starts[row], begin), begin - starts[row])
            after = (launched.within(end, ends[row]), ends[row] - end)
            if before > after:
                ends[row] = max(begin, starts[row])
            else:
                starts[row] = min(end, ends[row])
    return spans.with_columns(
        start_ns=pl.Series(starts, dtype=pl.Int64), end_ns=pl.Series(ends, dtype=pl.Int64)
    )


class _Launched:
    """How much work was launched in an interval."""

    def __init__(self, work: pl.DataFrame) -> None:
        ordered = work.sort("at_ns")
        self.at, self.total = ordered["at_ns"].to_list(), [0, *ordered["ns"].cum_sum().to_list()]

    def within(self, low: int, high: int) -> int:
        first, last = (bisect_left(self.at, edge) for edge in (low, max(low, high)))
        return int(self.total[last] - self.total[first])
