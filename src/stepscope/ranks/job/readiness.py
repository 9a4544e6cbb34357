"""When a call could have begun, had its stream been free: once the device has done what was launched before it."""

from __future__ import annotations

import polars as pl

from stepscope.trace.trace import Trace

_WORK = ("kernel", "copy", "memset")


def ready_ns(trace: Trace, calls: pl.DataFrame) -> pl.Series:
    """For each of `collective_calls` the end of the last work on the device that was launched before it; null where that is not known."""
    events = trace.events
    launches = trace.links.filter(pl.col("why") == "launch").unique("to", keep="first")
    launched = launches.select(
        event="to",
        launched_ns=events["start_ns"].gather(launches["from"]),
        kind=events["kind"].gather(launches["to"]).cast(pl.String),
        is_call=(events["role"].gather(launches["to"]) == "collective").fill_null(False),
        ready_ns=events["start_ns"].gather(launches["to"]) + events["dur_ns"].gather(launches["to"]),
    )
    work = launched.filter(pl.col("kind").is_in(_WORK), ~pl.col("is_call")).sort("launched_ns")
    own = calls.select("event").join(launched.select("event", "launched_ns"), on="event", how="left")
    rows = own.with_row_index("row").drop_nulls().sort("launched_ns")
    found = rows.join_asof(work.select("launched_ns", "ready_ns"), on="launched_ns", strategy="backward")
    every = own.with_row_index("row").select("row").join(found, on="row", how="left", maintain_order="left")
    return every["ready_ns"]
