"""When a call could have begun, had its stream been free: once the device has done what was launched before it."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.steps.work import launches_of
from stepscope.trace.columns import repeated
from stepscope.trace.frames import filled, kept, take
from stepscope.trace.trace import Trace

_WORK = ("kernel", "copy", "memset")


def ready_ns(trace: Trace, calls: pl.DataFrame) -> pl.Series:
    """For each of `collective_calls` the end of the last work on the device that was launched before it; null where that is not known."""
    events, launches = trace.events, launches_of(trace)
    done = launches["to"]
    launched = take(events["start_ns"], launches["from"])
    at = repeated(None, len(events), pl.Int64).scatter(done, launched)  # when each event was launched
    ends = take(events["start_ns"], done) + take(events["dur_ns"], done)
    kind = take(events["kind"], done)
    is_work = filled((kind == _WORK[0]) | (kind == _WORK[1]) | (kind == _WORK[2]))
    is_call = filled(take(events["role"], done) == "collective")
    work = kept(pl.DataFrame({"launched_ns": launched, "ready_ns": ends}), is_work & ~is_call)
    work = work.sort("launched_ns", maintain_order=True)
    own = take(at, calls["event"])
    before = work["launched_ns"].search_sorted(own, side="right").cast(pl.Int64) - 1
    known = before.set((before < 0) | own.is_null(), None)
    return take(work["ready_ns"], known).alias("ready_ns")
