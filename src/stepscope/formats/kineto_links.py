"""Links of a Kineto trace: launches by correlation id, forward to backward by flow, waits by event record."""

from __future__ import annotations

import polars as pl

from stepscope.formats.json_events import JsonEvents
from stepscope.trace.schema import LinkReason

_BEGIN, _END = ord("s"), ord("f")
_DEVICE_LAYOUTS = ("kernel", "copy", "sync")


def kineto_links(found: JsonEvents) -> pl.DataFrame:
    """Launches and waits, as row numbers of events."""
    return pl.concat([_launches(found), _waits(found)])


def _launches(found: JsonEvents) -> pl.DataFrame:
    """One launch may start many kernels: a CUDA graph's."""
    calls = found.layouts["runtime"].select("event", "correlation").filter(pl.col("correlation") > 0)
    device = pl.concat(found.layouts[name].select("event", "correlation") for name in _DEVICE_LAYOUTS).filter(
        pl.col("correlation") > 0
    )
    pairs = calls.join(device, on="correlation", suffix="_to").select(
        pl.col("event").alias("from"), to="event_to"
    )
    if pairs["to"].is_duplicated().any():
        pairs = _latest_before(pairs, found.events["start"])
    return pairs.with_columns(why=pl.lit("launch", dtype=LinkReason))


def _latest_before(pairs: pl.DataFrame, start: pl.Series) -> pl.DataFrame:
    """Several processes in one file reuse correlation ids: a kernel belongs to the last such call before it."""
    late = pl.col("from_start") > pl.col("to_start")
    return (
        pairs.with_columns(from_start=start.gather(pairs["from"]), to_start=start.gather(pairs["to"]))
        .sort([late, pl.col("from_start")], descending=[False, True], maintain_order=True)
        .unique("to", keep="first", maintain_order=True)
        .select("from", "to")
    )


def _waits(found: JsonEvents) -> pl.DataFrame:
    """From the call that recorded a CUDA event to the wait for it."""
    sync = found.layouts["sync"].filter(pl.col("wait_on_record") > 0)
    calls = found.layouts["runtime"].filter(pl.col("correlation") > 0)
    pairs = calls.join(sync, left_on="correlation", right_on="wait_on_record", suffix="_to")
    return pairs.select(
        pl.col("event").alias("from"), to="event_to", why=pl.lit("record-wait", dtype=LinkReason)
    ).unique(["from", "to"], maintain_order=True)


def kineto_flows(found: JsonEvents) -> pl.DataFrame:
    """Forward to backward, and launches that have a flow but no correlation id."""
    flows = found.flows.filter(pl.col("id").is_not_null())
    category = pl.col("category").cast(pl.String)
    forward = _pairs(flows.filter(category.is_in(["fwdbwd"])), "forward-backward")
    if found.layouts["runtime"]["correlation"].drop_nulls().len():
        return forward
    old = ["ac2g", "async", "async_cpu_to_gpu", "async_gpu"]
    return pl.concat([forward, _pairs(flows.filter(category.is_in(old)), "launch")])


def _pairs(flows: pl.DataFrame, why: str) -> pl.DataFrame:
    begin = flows.filter(pl.col("ph") == _BEGIN).unique("id", keep="first", maintain_order=True)
    end = flows.filter(pl.col("ph") == _END)
    return begin.join(end, on="id", suffix="_to").select(
        from_track="track",
        from_ns="start",
        to_track="track_to",
        to_ns="start_to",
        why=pl.lit(why, dtype=LinkReason),
    )
