"""The device's own share of gaps: work was queued, and the device had not begun it yet.

An idle device begins within microseconds. If it takes far longer, and the host is blocked in one call meanwhile, that call is what
can be looked at: the share is named by it then, and else by the work that came late.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.account.host_timeline import Timeline
from stepscope.analysis.host.causes import host_causes
from stepscope.analysis.part_column import part
from stepscope.registers.calibration.launches import LATEST_LAUNCH_NS
from stepscope.registers.policy.findings import MAJORITY
from stepscope.trace.frames import take
from stepscope.trace.trace import Trace

_NAMES = {"gap": pl.UInt32, "call": pl.UInt32, "call_site": pl.UInt32, "call_track": pl.UInt32}


def queued(trace: Trace, gaps: pl.DataFrame) -> pl.DataFrame:
    """The device's shares of gaps (gap, start_ns, end_ns, follower, follower_track, track), with part, named_by, detail and thread."""
    ops = trace.kernels.select(follower="event", detail="op").unique("follower", keep="first")
    found = gaps.join(ops, on="follower", how="left", maintain_order="left").join(
        _blocked(trace, gaps), on="gap", how="left", maintain_order="left"
    )
    is_blocked = pl.col("call").is_not_null()
    return found.with_columns(
        part=part("device_gap"),
        named_by=pl.coalesce("call", "follower"),
        detail=pl.when(is_blocked).then("call_site").otherwise("detail"),
        thread=pl.coalesce("call_track", "follower_track"),
    )


def _blocked(trace: Trace, gaps: pl.DataFrame) -> pl.DataFrame:
    """gap, call, call_site, call_track of the long ones in most of which the thread that launched was in one wait for the device."""
    length = pl.col("end_ns") - pl.col("start_ns")
    long = gaps.filter(length > LATEST_LAUNCH_NS)
    waits = host_causes(trace)["waits"]
    if long.is_empty() or not waits.any():
        return pl.DataFrame(schema=_NAMES)
    waited = Timeline(trace, waits).cut(long.select("gap", "start_ns", "end_ns", "track"))
    by_call = (
        waited.drop_nulls("event").group_by("gap", "event").agg(pl.col("track").first(), ns=length.sum())
    )
    most = by_call.join(long.select("gap", whole_ns=length), on="gap").filter(
        pl.col("ns") > MAJORITY * pl.col("whole_ns")
    )
    asked_by = trace.events["parent"]
    return most.select(
        pl.col("gap").cast(pl.UInt32),
        call="event",
        call_site=take(asked_by, most["event"]),
        call_track="track",
    )
