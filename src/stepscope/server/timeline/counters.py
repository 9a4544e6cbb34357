"""Counters: how busy each device is, memory, how much work is queued, and the trace's own.

A tile of a counter has as many buckets as a tile of slices. The body: places (int32), least, greatest and last value
(float32), one column after the other; place -1 is the value from before the tile.
"""

from __future__ import annotations

import sys
from array import array
from dataclasses import dataclass, field
from typing import Any

import msgspec
import polars as pl

from stepscope.analysis.device.launch_queue import launch_rows
from stepscope.analysis.device.use import time_before
from stepscope.native.spans.sets import union
from stepscope.native.view import lod
from stepscope.server.timeline import tiles
from stepscope.server.timeline.view import View, lean
from stepscope.trace.columns import buffer, series
from stepscope.trace.trace import Trace

_WORK = ("kernel", "copy", "memset")


class CounterShown(msgspec.Struct):
    """A counter and its heading; `group` is the group of tracks that it belongs to."""

    id: str
    title: str
    unit: str
    group: str | None
    detail: str


@dataclass(frozen=True)
class Samples:
    """time_ns and value by time; or, of a busy share, when spans began and ended."""

    table: pl.DataFrame = field(repr=False)
    is_share: bool = False


def counters_of(trace: Trace) -> list[CounterShown]:
    """All that the trace can show, without working any of them out."""
    found = []
    kinds = _device_kinds(trace)
    for device in sorted(kinds):
        name, group = f"{kinds.get(device, 'device').upper()} {device}", f"device {device}"
        found.append(
            CounterShown(
                f"busy {device}", "busy", "share", group, f"Share of time in which anything ran on {name}"
            )
        )
        if (trace.links["why"] == "launch").any():
            words = f"Work launched on {name} and not finished"
            found.append(CounterShown(f"queue {device}", "queue depth", "", group, words))
    for kind, place in _allocators(trace):
        is_host = kind == "cpu" or place is None
        title = "host memory" if is_host else "memory allocated"
        group_of = None if is_host else f"device {place}"
        found.append(
            CounterShown(
                f"memory {kind} {-1 if is_host else place}",
                title,
                "bytes",
                group_of,
                "Bytes the allocator has given out",
            )
        )
    return found + _own(trace)


def _device_kinds(trace: Trace) -> dict[int, str]:
    """The devices that have streams, which is known without a look at the events."""
    streams = trace.tracks.filter((pl.col("what") == "device") & pl.col("device").is_not_null())
    rows = streams.select("device", "device_kind").iter_rows()
    return {device: str(kind or "device") for device, kind in rows}


def _allocators(trace: Trace) -> list[tuple[str, int | None]]:
    if trace.memory.is_empty():
        return []
    rows = trace.memory.select("device_kind", "device").unique().select(_KIND, _DEVICE).unique()
    return list(rows.sort("kind", "device", descending=[True, False]).iter_rows())


_KIND = pl.col("device_kind").cast(pl.String).fill_null("gpu").alias("kind")
# The host is one, whatever number a writer gave it.
_DEVICE = pl.when(_KIND != "cpu").then(pl.col("device")).alias("device")


def _own(trace: Trace) -> list[CounterShown]:
    if trace.counters.is_empty():
        return []
    rows = trace.tracks.filter(pl.col("id").is_in(trace.counters["track"].unique().implode())).sort("id")
    return [
        CounterShown(
            f"track {row['id']}",
            row["thread"] or row["process"] or f"counter {row['id']}",
            "",
            f"device {row['device']}" if row["device"] is not None else None,
            "A counter of the trace itself",
        )
        for row in rows.iter_rows(named=True)
    ]


def counter_tile(view: View, name: str, level: int, index: int) -> bytes | None:
    """One tile; None if there is no such counter."""
    if name not in {each.id for each in known_counters(view)}:
        return None
    samples = view.run.kept(f"timeline counter {view.name} {name}", lambda: lean(_samples(view.trace, name)))
    begin = tiles.begin_of(level, index)
    if samples.is_share:
        return _shares(samples.table, begin, level)
    found = lod.samples(
        buffer(samples.table["time_ns"]), buffer(samples.table["value"]), begin, level, tiles.BUCKETS
    )
    return _body(found[0], *(array("f", column) for column in found[1:]))


def known_counters(view: View) -> list[CounterShown]:
    """All counters of a rank."""
    return view.run.kept(f"timeline counters {view.name}", lambda: counters_of(view.trace))


def _samples(trace: Trace, name: str) -> Samples:
    what, *rest = name.split(" ")
    if what == "busy":
        return Samples(_busy(trace, int(rest[0])), is_share=True)
    if what == "queue":
        return Samples(_queue(trace, int(rest[0])))
    if what == "memory":
        return Samples(_memory(trace, rest[0], int(rest[1])))
    own = trace.counters.filter(pl.col("track") == int(rest[0])).sort("time_ns", maintain_order=True)
    return Samples(own.select("time_ns", "value").drop_nulls().rechunk())


def _busy(trace: Trace, device: int) -> pl.DataFrame:
    """When anything ran: start_ns, end_ns, in order and without overlap."""
    streams = trace.tracks.filter((pl.col("what") == "device") & (pl.col("device") == device))["id"]
    work = (
        trace.events.lazy()
        .filter(pl.col("track").is_in(streams.implode()) & pl.col("kind").is_in(_WORK))
        .select("start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns"))
        .collect()
        .sort("start_ns")
    )
    start, end = union(buffer(work["start_ns"]), buffer(work["end_ns"]))
    return pl.DataFrame([series("start_ns", start, pl.Int64), series("end_ns", end, pl.Int64)])


def _queue(trace: Trace, device: int) -> pl.DataFrame:
    """One more with each launch, one less when its work is done."""
    rows = launch_rows(trace).filter(pl.col("device") == device)
    begun = rows.select(time_ns="launched_ns", change=pl.lit(1.0))
    done = rows.select(time_ns=pl.max_horizontal("end_ns", "launched_ns"), change=pl.lit(-1.0))
    changes = pl.concat([begun, done]).sort("time_ns", maintain_order=True)
    return changes.select("time_ns", value=pl.col("change").cum_sum()).rechunk()


def _memory(trace: Trace, kind: str, device: int) -> pl.DataFrame:
    """The total that the allocator reported, else the running sum of what it gave and took back."""
    mine = _KIND.eq(kind) & _DEVICE.fill_null(-1).eq(device)
    needed = trace.memory.select("device_kind", "device", "time_ns", "bytes", "total_allocated")
    rows = needed.filter(mine).sort("time_ns", maintain_order=True)
    running = pl.col("bytes").cum_sum()
    total = pl.coalesce("total_allocated", running - running.min().clip(upper_bound=0))
    return rows.select("time_ns", value=total.cast(pl.Float64)).drop_nulls().rechunk()


def _shares(spans: pl.DataFrame, begin: int, level: int) -> bytes:
    """The busy share of each bucket, where it changes."""
    edges = pl.int_range(tiles.BUCKETS + 1, dtype=pl.Int64, eager=True) * (1 << level) + begin
    done = time_before(edges, spans)
    share = ((done[1:] - done[:-1]) / (1 << level)).cast(pl.Float32)
    changed = pl.select(share.ne_missing(share.shift(1))).to_series().arg_true()
    values = array("f", share.gather(changed))
    return _body(array("i", changed), values, values, values)


def _body(places: array[int], *values: array[float]) -> bytes:
    columns: tuple[array[Any], ...] = (places, *values)
    if sys.byteorder == "big":
        for column in columns:
            column.byteswap()
    return b"".join(column.tobytes() for column in columns)
