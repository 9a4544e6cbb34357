"""Copies of JAX that have a stream of their own, and yet run in turn with the kernels.

Before XLA's runtime copies an array of the host, it waits for what was launched on the stream of the kernels, whose memory it may
take; the program then waits for its arguments. No profile has an event for either wait, so the copies themselves show it.
"""

from __future__ import annotations

import polars as pl

from stepscope.registers.calibration.launches import LARGE_COPY_BYTES, OVERLAP_IN_TURN_MOST
from stepscope.trace.trace import Trace


def streams_in_turn(trace: Trace, streams: pl.Series) -> dict[int, int]:
    """Of these tracks of a device, those that only copy from the host while no kernel runs, and the busiest track, with which they take turns.

    Where the copies are small, as of a number for each op, the host decides when they run.
    """
    if trace.info.framework != "jax" or len(streams) <= 1:
        return {}
    copies = trace.copies.select(
        "event", "bytes", sends=pl.col("direction").cast(pl.String).eq_missing("HtoD")
    )
    work = trace.events.filter(
        pl.col("track").is_in(streams.implode()), pl.col("kind").is_in(["kernel", "copy", "memset"])
    )
    work = work.select("track", "kind", "start_ns", "dur_ns", event="id").join(copies, on="event", how="left")
    kernels = work.filter(pl.col("kind") == "kernel")
    if kernels.is_empty():
        return {}
    by_track = kernels.group_by("track").agg(pl.col("dur_ns").sum()).sort("dur_ns", "track")
    main = int(by_track["track"][-1])
    sending = pl.col("sends").fill_null(False).all() & (pl.col("bytes").mean() > LARGE_COPY_BYTES)
    tracks = work.group_by("track").agg(sending=sending).filter("sending")["track"]
    found = sorted(tracks.to_list())
    return {track: main for track in found if _take_turns(work.filter(pl.col("track") == track), kernels)}


def _take_turns(copies: pl.DataFrame, kernels: pl.DataFrame) -> bool:
    """Whether nearly nothing of the copies runs beside a kernel."""
    both = pl.concat([copies.with_columns(is_copy=True), kernels.with_columns(is_copy=False)])
    ends = pl.col("start_ns") + pl.col("dur_ns")
    rows = both.sort("start_ns", "event").select(
        "start_ns",
        "is_copy",
        end=ends,
        copied=pl.when("is_copy").then(ends).cum_max().forward_fill(),
        computed=pl.when(~pl.col("is_copy")).then(ends).cum_max().forward_fill(),
    )
    before = pl.when("is_copy").then("computed").otherwise("copied").fill_null(pl.col("start_ns"))
    beside = (pl.min_horizontal("end", before) - pl.col("start_ns")).clip(lower_bound=0)
    overlapped = int(rows.select(beside.sum()).item())
    return overlapped <= OVERLAP_IN_TURN_MOST * int(copies["dur_ns"].sum())
