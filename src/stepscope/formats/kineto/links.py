"""Links of a Kineto trace: launches by correlation id, forward to backward by flow, waits by event record."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.formats.chrome.scan.columns import JsonEvents
from stepscope.trace.flows import note_loose_flows
from stepscope.trace.frames import kept
from stepscope.trace.problems import problem
from stepscope.trace.schema import LinkReason

_BEGIN, _END = ord("s"), ord("f")
_DEVICE_LAYOUTS = ("kernel", "copy", "sync")
_LAUNCH_FLOWS = ["ac2g", "async", "async_cpu_to_gpu", "async_gpu"]
_LINKS: dict[str, Any] = {"from": pl.UInt32, "to": pl.UInt32, "why": LinkReason}
_FLOWS: dict[str, Any] = {
    "from_track": pl.UInt32,
    "from_ns": pl.Int64,
    "to_track": pl.UInt32,
    "to_ns": pl.Int64,
    "why": LinkReason,
}


def kineto_links(found: JsonEvents) -> pl.DataFrame:
    """Launches and waits, as row numbers of events."""
    return pl.concat([_launches(found), _waits(found)])


def _launches(found: JsonEvents) -> pl.DataFrame:
    """One launch may start many kernels: a CUDA graph's."""
    calls = found.layouts["runtime"][["event", "correlation"]]
    calls = kept(calls, calls["correlation"] > 0)
    device = pl.concat([found.layouts[name][["event", "correlation"]] for name in _DEVICE_LAYOUTS])
    device = kept(device, device["correlation"] > 0)
    pairs = calls.join(device, on="correlation", suffix="_to")
    pairs = pairs.select(pl.col("event").alias("from"), to="event_to")
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
    """From the call that recorded a CUDA event to the wait for it. Where CUPTI names no such call, nothing is guessed."""
    if not found.layouts["sync"]["wait_on_event"].count():
        return pl.DataFrame(schema=_LINKS)
    sync = found.layouts["sync"].filter(pl.col("wait_on_event").is_not_null())
    calls = found.layouts["runtime"].filter(pl.col("correlation") > 0)
    pairs = calls.join(sync, left_on="correlation", right_on="wait_on_record", suffix="_to")
    pairs = pairs.select(pl.col("event").alias("from"), to="event_to")
    if pairs["to"].is_duplicated().any():
        pairs = _latest_before(pairs, found.events["start"])
    unknown = len(sync) - len(pairs)
    if unknown:
        found.problems.add(
            problem(
                "wait-without-record",
                "{count} waits for a CUDA event do not name the call that recorded it, or that call was not recorded.",
                count=unknown,
            )
        )
    return pairs.with_columns(why=pl.lit("record-wait", dtype=LinkReason))


def kineto_flows(found: JsonEvents) -> pl.DataFrame:
    """Forward to backward, arrows of other tools, and launches that have a flow but no correlation id."""
    if found.flows.is_empty():
        return pl.DataFrame(schema=_FLOWS)
    category = found.flows["category"]
    is_launch = category.is_in(_LAUNCH_FLOWS).fill_null(False)
    is_backward = category.is_in(["fwdbwd"]).fill_null(False)
    wanted = {
        "forward-backward": found.flows.filter(is_backward),
        "flow": found.flows.filter(~is_launch & ~is_backward),
    }
    if not found.layouts["runtime"]["correlation"].drop_nulls().len():
        wanted["launch"] = found.flows.filter(is_launch)
    return pl.concat([_pairs(found, flows, why) for why, flows in wanted.items()])


def _pairs(found: JsonEvents, flows: pl.DataFrame, why: str) -> pl.DataFrame:
    """Each end with the beginning of the same id; what has no other end is counted."""
    if flows.is_empty():
        return pl.DataFrame(schema=_FLOWS)
    begin = flows.filter(pl.col("ph") == _BEGIN).unique("id", keep="first", maintain_order=True)
    end = flows.filter(pl.col("ph") == _END)
    loose = len(end.join(begin, on="id", how="anti")) + len(begin.join(end, on="id", how="anti"))
    note_loose_flows(found.problems, loose)
    return begin.join(end, on="id", suffix="_to").select(
        from_track="track",
        from_ns="start",
        to_track="track_to",
        to_ns="start_to",
        why=pl.lit(why, dtype=LinkReason),
    )
