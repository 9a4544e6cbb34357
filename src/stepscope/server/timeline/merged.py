"""Folded devices: all that runs on any stream of a device in one row, so that folding hides no stream."""

from __future__ import annotations

from array import array
from itertools import accumulate

import polars as pl

from stepscope.native.view.lod import Rows
from stepscope.native.view.rows import BLOCK
from stepscope.server.timeline.layout import GroupShown, groups_of
from stepscope.server.timeline.store import Row, Store
from stepscope.server.timeline.view import View, lean
from stepscope.trace.columns import buffer

MERGED = "merged"


def merged_of(view: View) -> Store:
    """A row for each device, in the order of `GroupShown.merged`; slices have the numbers and names of the events."""
    return view.run.kept(f"timeline merged {view.name}", lambda: lean(_make(view)))


def _make(view: View) -> Store:
    events = view.trace.events
    groups = [each for each in groups_of(view.trace, view.store) if each.merged is not None]
    parts = [_by_start(events, group) for group in groups]
    first = array("I", accumulate((len(each) for each in parts), initial=0))
    order = _whole(events, parts)
    longest = _longest_of_blocks(events["dur_ns"].gather(order), order)
    start, dur = (buffer(events[name]) for name in ("start_ns", "dur_ns"))
    native = Rows(start, dur, buffer(order), buffer(longest), first, bytes([1]) * len(parts))
    rows = [Row(at, 0, len(each), True) for at, each in enumerate(parts)]
    held = int(order.estimated_size() + longest.estimated_size())
    return Store(rows, native, array("I"), first, view.store.names, view.store.labels, held)


def _by_start(events: pl.DataFrame, group: GroupShown) -> pl.Series:
    """The events of the group's streams; what encloses others comes before them, and is painted below them."""
    streams = [track.id for track in group.tracks if track.what == "device"]
    chosen = events.lazy().filter(pl.col("track").is_in(streams or [track.id for track in group.tracks]))
    by = chosen.select("id", "start_ns", "dur_ns").sort(
        "start_ns", "dur_ns", "id", descending=[False, True, False]
    )
    return by.collect()["id"]


def _whole(events: pl.DataFrame, parts: list[pl.Series]) -> pl.Series:
    """All numbers of events, those of the parts first: rows are of a whole table."""
    shown = pl.concat([pl.Series("id", [], dtype=pl.UInt32), *parts])
    is_left = pl.repeat(True, len(events), dtype=pl.Boolean, eager=True).scatter(shown, False)
    whole: pl.Series = pl.concat([shown, is_left.arg_true().cast(pl.UInt32).alias("id")]).rechunk()
    return whole


def _longest_of_blocks(dur: pl.Series, order: pl.Series) -> pl.Series:
    """For each BLOCK of the order the number of its longest event, the first of equals."""
    missing = -len(dur) % BLOCK
    padded = pl.concat([dur, pl.repeat(-1, missing, dtype=pl.Int64, eager=True).alias(dur.name)])
    places = padded.reshape((-1, BLOCK)).arr.arg_max().cast(pl.UInt32)
    first = pl.int_range(len(places), dtype=pl.UInt32, eager=True) * BLOCK
    longest: pl.Series = order.gather(places + first).rechunk()
    return longest
