"""A real trace of one rank as the stuff that ranks are made of: some of its steps, repeated, with their account."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import polars as pl

import stepscope
from benchmarks.ranks.sources import find_source
from stepscope.analysis.account.account import account
from stepscope.analysis.steps.find import find_steps
from stepscope.trace.frames import take_largest, take_smallest
from stepscope.trace.schema import EVENT_REFERENCES
from stepscope.trace.trace import Trace, TraceInfo

_BUSY = ("compute", "copy", "collective")
_KEPT_DEPTH = 2  # deeper host events change nothing that is asked here, and there are many

Ints = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


@dataclass(frozen=True)
class Base:
    """`edges` bound the slices of the account, which have a `part` and a `step`; `cuts` are the edges where collectives go."""

    trace: Trace
    device: int
    steps: list[int]
    edges: Ints
    part: list[str]
    step: Ints  # the place of the slice's step among `steps`
    cuts: Ints  # edge numbers, in time order, the same number in each step
    cuts_per_step: int

    @property
    def parts(self) -> dict[str, int]:
        """Time by part."""
        lengths = np.diff(self.edges)
        return {part: int(lengths[np.array(self.part) == part].sum()) for part in set(self.part)}


@cache
def base_of(name: str, steps: int = 12, places: tuple[float, ...] = (0.5, 0.75, 0.97)) -> Base:
    """The trace of this name with that many steps, and places for collectives at these shares of each."""
    trace = repeated(_thinned(stepscope.load(find_source(name), cache=False).traces[0]), steps)
    found = find_steps(trace)
    device = found.windows["device"].drop_nulls()[0]
    rows = account(trace, found).slices.filter(pl.col("device") == device).sort("start_ns")
    numbers = rows["step"].unique().sort().to_list()
    edges = np.append(rows["start_ns"].to_numpy(), rows["end_ns"][-1]).astype(np.int64)
    part = rows["part"].cast(pl.String).to_list()
    step = np.searchsorted(np.array(numbers), rows["step"].to_numpy()).astype(np.int64)
    cuts = [_cut(part, step, at, place) for at in range(len(numbers)) for place in places]
    return Base(trace, device, numbers, edges, part, step, np.array(cuts, dtype=np.int64), len(places))


def _cut(part: list[str], step: Ints, at: int, place: float) -> int:
    """The edge after this share of the step's work at which work has just ended and nothing else runs."""
    inside = np.flatnonzero(step == at)
    free = [i for i in inside[1:] if part[i - 1] in _BUSY and part[i] not in _BUSY]
    return int(free[min(len(free) - 1, int(place * len(free)))])


def _thinned(trace: Trace) -> Trace:
    """Without what lies deep inside host events, and without tables that no collective needs."""
    hosts = trace.tracks.filter(pl.col("what") == "host")["id"]
    linked = pl.concat([trace.links["from"], trace.links["to"]]).unique()
    deep = pl.col("track").is_in(hosts.implode()) & (pl.col("depth") > _KEPT_DEPTH)
    kept = ~deep | pl.col("id").is_in(linked.implode())
    kept &= ~pl.col("kind").cast(pl.String).is_in(["memory", "counter", "instant", "overhead"])
    return _renumbered(trace, trace.events.filter(kept), trace.info)


def _renumbered(trace: Trace, events: pl.DataFrame, info: TraceInfo) -> Trace:
    """The trace with these of its events, in the order of the schema."""
    ordered = events.sort("track", "start_ns", "dur_ns", descending=[False, False, True], maintain_order=True)
    new = pl.DataFrame({"old": ordered["id"], "new": pl.Series(range(len(ordered)), dtype=pl.UInt32)})
    old, fresh = new["old"], new["new"]
    moved = ordered.with_columns(
        id=fresh, parent=pl.col("parent").replace_strict(old, fresh, default=None, return_dtype=pl.UInt32)
    )
    tables = {"events": moved, "tracks": trace.tracks, "traces": info.frame()}
    for name in ("links", "ops", "kernels", "copies"):
        columns = EVENT_REFERENCES[name]
        frame = trace.tables[name].with_columns(
            pl.col(column).replace_strict(old, fresh, default=None, return_dtype=pl.UInt32)
            for column in columns
        )
        tables[name] = frame.drop_nulls(list(columns) if name == "links" else "event")
    return Trace(tables)


def repeated(trace: Trace, steps: int) -> Trace:
    """The steps of the trace one after the other until there are so many."""
    found = find_steps(trace)
    low = take_smallest(found.host["start_ns"])
    high = max(take_largest(found.windows["end_ns"]), take_largest(found.host["end_ns"]))
    end = pl.col("start_ns") + pl.col("dur_ns")
    inside = trace.events.filter((pl.col("start_ns") >= low) & (end <= high))
    numbers = found.host["step"].sort()
    count, copies = len(numbers), -(-steps // len(numbers))
    stride = take_largest(trace.events["id"]) + 1
    first = int(numbers[0])
    tiles: dict[str, list[pl.DataFrame]] = {name: [] for name in ("links", "ops", "kernels", "copies")}
    events = []
    for copy in range(copies):
        events.append(
            inside.with_columns(
                pl.col("id", "parent") + copy * stride,
                pl.col("start_ns") + copy * (high - low),
                pl.col("step") - first + copy * count,
            )
        )
        for name, rows in tiles.items():
            rows.append(trace.tables[name].with_columns(pl.col(*EVENT_REFERENCES[name]) + copy * stride))
    tables = {name: pl.concat(rows) for name, rows in tiles.items()}
    joined = Trace({**tables, "tracks": trace.tracks, "traces": trace.tables["traces"]})
    wanted = pl.concat(events).filter(pl.col("step").is_null() | (pl.col("step") < steps))
    return _renumbered(joined, wanted, trace.info)
