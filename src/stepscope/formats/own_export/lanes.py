"""Which events must move aside before Perfetto can draw a track.

Perfetto drops a slice that begins inside another one of its thread and ends after it. Events that would be dropped
get a lane above 0; within a lane, events nest or follow one another.
"""

from __future__ import annotations

import polars as pl

from stepscope.native.spans.lanes import lanes as lanes_without_nesting
from stepscope.trace.columns import buffer, series

# Lanes that are tried one by one; an event that fits in none of them gets a lane where nothing nests.
NESTED_LANES = 16


def lanes(events: pl.DataFrame) -> pl.Series:
    """The lane of each event; 0 is the track itself."""
    lane = pl.repeat(0, len(events), dtype=pl.UInt32, eager=True)
    for track in _overlapping(events):
        of_track = events.filter(pl.col("track") == track)
        start, end = of_track["start_ns"], of_track["start_ns"] + of_track["dur_ns"]
        lane = lane.scatter(of_track["id"], _fitted(start, end))
    return lane


def _overlapping(events: pl.DataFrame) -> list[int]:
    """The tracks where an event begins before an earlier one of the same depth has ended."""
    level = ["track", "depth"]
    end = pl.col("start_ns") + pl.col("dur_ns")
    earlier = end.cum_max().shift(1).over(level)
    found = events.lazy().select("track", overlaps=pl.col("start_ns") < earlier).filter("overlaps")
    tracks: list[int] = found.select(pl.col("track").unique().sort()).collect().to_series().to_list()
    return tracks


def _fitted(start: pl.Series, end: pl.Series) -> pl.Series:
    """Lanes for the events of one track, sorted by start and longer first."""
    lane = pl.Series("lane", _first_fits(start.to_list(), end.to_list()), dtype=pl.UInt32)
    rest = (lane == NESTED_LANES).arg_true()
    if rest.is_empty():
        return lane
    found = lanes_without_nesting(buffer(start.gather(rest)), buffer(end.gather(rest)))
    return lane.scatter(rest, series("lane", found, pl.UInt32) + NESTED_LANES)


def _first_fits(start: list[int], end: list[int]) -> list[int]:
    """The first lane in which each event nests or stands alone; NESTED_LANES where there is none."""
    open_ends: list[list[int]] = [[] for _ in range(NESTED_LANES)]
    return [_first_fit(open_ends, begins, ends) for begins, ends in zip(start, end, strict=True)]


def _first_fit(open_ends: list[list[int]], begins: int, ends: int) -> int:
    for lane, stack in enumerate(open_ends):
        while stack and stack[-1] <= begins:
            stack.pop()
        if not stack or stack[-1] >= ends:
            stack.append(ends)
            return lane
    return NESTED_LANES
