"""Host collectives of device tensors: the call begins on the host while the device still computes what is to be sent.

The rank has come when its data has: when the call's thread is done waiting for the device, and the copies to the host that the
call launched are done. What the call waits for once it has launched a copy back to the device is the result, not the data.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.host.names import WAITS_FOR_DEVICE
from stepscope.trace.frames import conform
from stepscope.trace.trace import Trace

_SCHEMA = {"event": pl.UInt32, "held_ns": pl.Int64}


def held(trace: Trace, calls: pl.Series) -> pl.DataFrame:
    """event, held_ns: how long after its start each of these calls of host threads still waited for its rank's device."""
    rows = trace.events.select("id", "track", "start_ns", "dur_ns")[calls].sort("start_ns")
    if rows.is_empty() or trace.events.filter(pl.col("kind") == "runtime").is_empty():
        return pl.DataFrame(schema=_SCHEMA)
    inside = _inside(trace, rows)
    copies = _launched_copies(trace, inside)
    back = (
        copies.filter(pl.col("direction") == "HtoD").group_by("event").agg(back_ns=pl.col("start_ns").min())
    )
    waits = inside.filter(pl.col("name").str.contains(WAITS_FOR_DEVICE)).select("event", "start_ns", "end_ns")
    sent = copies.filter(pl.col("direction") == "DtoH").select("event", "start_ns", "end_ns")
    found = pl.concat([waits, sent]).join(back, on="event", how="left")
    found = found.filter((pl.col("start_ns") < pl.col("back_ns")).fill_null(True))
    until = found.group_by("event").agg(pl.col("end_ns").max())
    told = until.join(rows.rename({"id": "event"}), on="event")
    length = pl.min_horizontal(pl.col("end_ns") - pl.col("start_ns"), "dur_ns")
    return conform(told.with_columns(held_ns=length), _SCHEMA)


def _inside(trace: Trace, calls: pl.DataFrame) -> pl.DataFrame:
    """event (the call), id, name, start_ns and end_ns of the runtime calls that a collective's thread makes inside of it."""
    runtime = trace.events.filter(
        (pl.col("kind") == "runtime") & pl.col("track").is_in(calls["track"].unique().implode())
    ).select(
        "id",
        "track",
        "start_ns",
        pl.col("name").cast(pl.String),
        end_ns=pl.col("start_ns") + pl.col("dur_ns"),
    )
    begun = calls.select("track", "start_ns", event="id", until_ns=pl.col("start_ns") + pl.col("dur_ns"))
    rows = runtime.sort("start_ns").join_asof(
        begun, on="start_ns", by="track", strategy="backward", check_sortedness=False
    )
    return rows.filter(pl.col("end_ns") <= pl.col("until_ns"))


def _launched_copies(trace: Trace, inside: pl.DataFrame) -> pl.DataFrame:
    """event (the call), direction, start_ns of the launch, end_ns of the copy."""
    links = trace.links.filter(pl.col("why") == "launch").select(id="from", copy="to")
    ways = trace.copies.select(copy="event", direction=pl.col("direction").cast(pl.String))
    rows = inside.select("event", "id", "start_ns").join(links, on="id").join(ways, on="copy")
    ends = (trace.events["start_ns"] + trace.events["dur_ns"]).gather(rows["copy"])
    return rows.with_columns(end_ns=ends)
