"""First launches of kernels, whose code the driver loads then: warm-up, which a process pays for once for each kernel."""

from __future__ import annotations

import polars as pl

from stepscope.registers.calibration.launches import KERNEL_LOAD_NS
from stepscope.trace.frames import take
from stepscope.trace.kept import kept_with_trace
from stepscope.trace.trace import Trace

_WORK = ("kernel", "copy", "memset")


@kept_with_trace
def loading_launches(trace: Trace) -> pl.Series:
    """Calls that take long to launch a kernel while no device works: a queue that is full would hold them up only while one does."""
    events = trace.events
    launches = trace.links.filter(pl.col("why") == "launch")
    calls = pl.DataFrame(
        {
            "call": launches["from"],
            "start_ns": take(events["start_ns"], launches["from"]),
            "dur_ns": take(events["dur_ns"], launches["from"]),
            "kernel_ns": take(events["start_ns"], launches["to"]),
        }
    ).filter(
        pl.col("dur_ns") >= KERNEL_LOAD_NS,
        take(events["kind"], launches["from"]) == "runtime",
        take(events["kind"], launches["to"]) == "kernel",
    )
    if calls.is_empty():
        return calls["call"]
    work = events.filter(pl.col("kind").is_in(_WORK)).sort("start_ns")
    last_end = (work["start_ns"] + work["dur_ns"]).cum_max()
    # The kernel itself may begin before its call has returned.
    until = calls.select(pl.min_horizontal("kernel_ns", pl.col("start_ns") + pl.col("dur_ns"))).to_series()
    before = work["start_ns"].search_sorted(until).cast(pl.Int64) - 1
    is_idle = (before < 0) | (take(last_end, before.clip(lower_bound=0)) <= calls["start_ns"])
    found: pl.Series = calls["call"].filter(is_idle).unique()
    return found
