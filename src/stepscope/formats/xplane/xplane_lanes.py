"""Asynchronous work overlaps on its line: it gets lanes, one track each, instead of nesting."""

from __future__ import annotations

import polars as pl

from stepscope.formats.xplane import tracks as planes
from stepscope.native.spans.lanes import lanes
from stepscope.trace.columns import buffer, series
from stepscope.trace.frames import take_largest


def with_lanes(
    events: pl.DataFrame, tracks: pl.DataFrame, line_classes: list[int]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Events and tracks, where overlapping events of asynchronous lines lie on tracks of their own."""
    for line, line_class in enumerate(line_classes):
        if line_class == planes.ASYNC_OPS:
            events, tracks = _spread(events, tracks, line)
    return events, tracks


def _spread(events: pl.DataFrame, tracks: pl.DataFrame, line: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    rows = events.select(pl.int_range(pl.len(), dtype=pl.UInt32).alias("event"), "start_ns", "dur_ns")
    rows = rows.filter(events["track"] == line).sort("start_ns")
    end = rows["start_ns"] + rows["dur_ns"].clip(lower_bound=0)
    lane = series("lane", lanes(buffer(rows["start_ns"]), buffer(end)), pl.UInt32)
    count = take_largest(lane)
    if not count:
        return events, tracks
    first = len(tracks)
    moved = pl.select(pl.when(lane == 0).then(line).otherwise(lane + (first - 1)).cast(pl.UInt32)).to_series()
    copies = [_lane_track(tracks[line], first + i, i + 2) for i in range(count)]
    return events.with_columns(track=events["track"].scatter(rows["event"], moved)), pl.concat(
        [tracks, *copies]
    )


def _lane_track(track: pl.DataFrame, number: int, lane: int) -> pl.DataFrame:
    label = f" (lane {lane})"
    return track.with_columns(
        id=pl.lit(number, dtype=track["id"].dtype), thread=pl.col("thread") + label, tid=pl.col("tid") + label
    )
