"""When a trace begins and ends."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.server.timeline.store import Store
from stepscope.trace.trace import Trace

DOUBLE = 1 << 53  # up to here JavaScript's numbers hold every ns; those since 1970 are beyond
GRAIN_NS = 1024  # of ns since 1970 it holds every multiple of this


@dataclass(frozen=True)
class Extent:
    """Of a trace's events, in its own time. The page holds `start_ns` exactly, so that times counted from there are exact, too."""

    start_ns: int
    end_ns: int


def extent_of(trace: Trace, store: Store) -> Extent:
    """From the first start to the last end of what ran on a host or a device; of all events if nothing did."""
    ran = set(trace.tracks.filter(pl.col("what").is_in(["host", "device"]))["id"])
    outer = [number for number, row in enumerate(store.rows) if row.depth == 0]
    shown = [number for number in outer if store.rows[number].track in ran] or outer
    spans = [_span(trace, store, number) for number in shown]
    if not spans:
        return Extent(0, 1)
    start = min(span[0] for span in spans)
    if start > DOUBLE:
        start -= start % GRAIN_NS
    return Extent(start, max(*(span[1] for span in spans), start + 1))


def _span(trace: Trace, store: Store, number: int) -> tuple[int, int]:
    """When the first slice of a row begins and the last one ends; others are between them, unless they overlap."""
    first, last = store.first[number], store.first[number + 1]
    ends = range(first if store.rows[number].overlaps else last - 1, last)
    events = trace.events.select("start_ns", "dur_ns")
    start = int(events["start_ns"][store.order[first]])
    return start, max(sum(events.row(store.order[at])) for at in ends)
