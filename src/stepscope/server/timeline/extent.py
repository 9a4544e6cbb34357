"""When a trace begins and ends, and how far the clocks of two ranks are apart."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.trace.trace import Trace


@dataclass(frozen=True)
class Extent:
    """Of a trace's events, in its own time."""

    start_ns: int
    end_ns: int


def extent_of(trace: Trace) -> Extent:
    """From the first start to the last end of what ran on a host or a device; of all events if nothing did."""
    events = trace.events
    if events.is_empty():
        return Extent(0, 1)
    ran = trace.tracks.filter(pl.col("what").is_in(["host", "device"]))["id"]
    found = _span(events, ran.sort().to_list())
    if found is None:
        found = _span(events, sorted(trace.tracks["id"].to_list()))
    start, end = found or (0, 1)
    return Extent(start, max(end, start + 1))


def _span(events: pl.DataFrame, tracks: list[int]) -> tuple[int, int] | None:
    """Events come by track: each is a slice of the table, and nothing is copied."""
    edges = pl.Series([*tracks, *(track + 1 for track in tracks)], dtype=pl.UInt32)
    places = events["track"].search_sorted(edges, side="left").to_list()
    starts, ends = [], []
    for first, last in zip(places[: len(tracks)], places[len(tracks) :], strict=True):
        if first == last:
            continue
        starts.append(int(events["start_ns"][first]))
        part = events.slice(first, last - first)
        ends.append(int(part.select((pl.col("start_ns") + pl.col("dur_ns")).max()).item()))
    return (min(starts), max(ends)) if starts else None


def shift_between(shown: Trace, shown_extent: Extent, other: Trace, other_extent: Extent) -> int:
    """What to add to the other's times to have them in the shown one's.

    Clocks that put the two apart are not believed: then both begin at the same moment.
    """
    one, two = shown.info, other.info
    begin = shown_extent.start_ns - other_extent.start_ns
    if not one.base_unix_ns or not two.base_unix_ns:
        return begin
    shift = (two.base_unix_ns + two.clock_offset_ns) - (one.base_unix_ns + one.clock_offset_ns)
    apart = (
        other_extent.start_ns + shift > shown_extent.end_ns
        or other_extent.end_ns + shift < shown_extent.start_ns
    )
    return begin if apart else shift
