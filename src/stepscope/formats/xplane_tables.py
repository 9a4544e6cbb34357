"""Kernels, copies, allocations and ops, from the stats that say more of an event than when it was."""

from __future__ import annotations

import polars as pl

from stepscope.formats.xplane_stats import Stats
from stepscope.trace.schema import DeviceKind, Text

_NUMBER = r"(\d+)"
_EXTENT = r"(\d+),(\d+),(\d+)"
_KERNEL = {
    "registers": rf"(?:regs|registers_per_thread):{_NUMBER}",
    "static": rf"static_shared(?:_memory_usage)?:{_NUMBER}",
    "dynamic": rf"dynamic_shared(?:_memory_usage)?:{_NUMBER}",
    "occupancy": r"occ_pct:([\d.]+)",
}
_COPY = {
    "bytes": rf"(?:size|num_bytes):{_NUMBER}",
    "source": r"kind_src:(\S+)",
    "target": r"kind_dst:(\S+)",
    "memory": r"\bkind:(\S+)",
}
_ENDS = r"(?i)memcpy_?([HDPA])(?:2|to)([HDPA])"
_SIDE = {"device": "D", "array": "A", "pageable": "H", "pinned": "H", "host": "H"}
_ALLOCATED = rf"num_bytes:{_NUMBER}"
_ALLOCATOR_DEVICE = r"(?i)\b(gpu|tpu|xpu)_(\d+)_"


def kernels(events: pl.DataFrame, stats: Stats) -> pl.DataFrame:
    """Launch configuration of the kernels, as far as the file has it."""
    rows = events.select(event=pl.int_range(pl.len(), dtype=pl.UInt32)).filter(events["kind"] == "kernel")
    details = _parsed(stats.texts_of("kernel_details"), _KERNEL, {"grid": r"grid:" + _EXTENT, "block": r"block:" + _EXTENT})
    occupancy = stats.reals_of("theoretical_occupancy_pct").rename({"value": "theoretical"})
    node = stats.words_of("cuda_graph_node_id").rename({"value": "graph_node"})
    for found in (details, occupancy, node):
        rows = _with(rows, found)
    return rows.select(
        "event",
        "grid",
        "block",
        "graph_node",
        registers=pl.col("registers").cast(pl.UInt32, strict=False),
        shared_bytes=(pl.col("static").cast(pl.UInt64, strict=False) + pl.col("dynamic").cast(pl.UInt64, strict=False))
        .cast(pl.UInt32, strict=False),
        occupancy=pl.coalesce("theoretical", pl.col("occupancy").cast(pl.Float64, strict=False)).cast(pl.Float32),
    )  # fmt: skip


def copies(events: pl.DataFrame, stats: Stats) -> pl.DataFrame:
    """Copies and fills: how many bytes, from where to where."""
    is_copy = events["kind"].is_in(["copy", "memset"])
    rows = events.select("name", event=pl.int_range(pl.len(), dtype=pl.UInt32)).filter(is_copy)
    rows = _with(rows, _parsed(stats.texts_of("memcpy_details", "memset_details"), _COPY))
    ends = pl.col("name").cast(pl.String).str.extract_groups(_ENDS)
    by_name = ends.struct.field("1").str.to_uppercase() + "to" + ends.struct.field("2").str.to_uppercase()
    sides = [pl.col(side).replace_strict(list(_SIDE), list(_SIDE.values()), default=None) for side in ("source", "target")]
    return rows.select(
        "event",
        bytes=pl.col("bytes").cast(pl.Int64, strict=False),
        direction=pl.coalesce(by_name, sides[0] + "to" + sides[1]).cast(Text),
        source=pl.col("source").cast(Text),
        target=pl.coalesce("target", "memory").cast(Text),
    )


def memory(events: pl.DataFrame, stats: Stats) -> pl.DataFrame:
    """Allocations and releases: those that allocators tell of, and those that drivers were asked for."""
    found = [_allocator_rows(events, stats), _driver_rows(events, stats)]
    return pl.concat([frame for frame in found if len(frame)] or found[:1], how="diagonal")


def _allocator_rows(events: pl.DataFrame, stats: Stats) -> pl.DataFrame:
    allocator = stats.texts_of("allocator_name").rename({"owner": "event", "value": "allocator"})
    rows = allocator.filter(events["kind"].gather(allocator["event"]) == "memory")
    columns = {
        "size": stats.numbers("allocation_bytes"),
        "requested": stats.numbers("requested_bytes"),
        "total_allocated": stats.numbers("bytes_allocated"),
        "total_reserved": stats.numbers("bytes_reserved"),
        "address": stats.words_of("addr"),
    }
    for name, values in columns.items():
        rows = _with(rows, values.rename({"value": name}))
    names = events["name"].gather(rows["event"]).cast(pl.String)
    sign = pl.select(pl.when(names.str.contains("(?i)dealloc|free")).then(-1).otherwise(1)).to_series()
    return rows.select(
        "event",
        "allocator",
        "requested",
        "address",
        "total_allocated",
        "total_reserved",
        time_ns=events["start_ns"].gather(rows["event"]),
        bytes=pl.col("size") * sign,
        **_allocator_device(),
    )


def _allocator_device() -> dict[str, pl.Expr]:
    """An allocator of a device is named after it: `GPU_0_bfc`."""
    found = pl.col("allocator").cast(pl.String).str.extract_groups(_ALLOCATOR_DEVICE)
    kind = found.struct.field("1").str.to_lowercase()
    return {
        "device": found.struct.field("2").cast(pl.Int32, strict=False),
        "device_kind": pl.coalesce(kind, pl.lit("cpu")).cast(DeviceKind),
    }


def _driver_rows(events: pl.DataFrame, stats: Stats) -> pl.DataFrame:
    taken = _parsed(stats.texts_of("memalloc_details"), {"bytes": _ALLOCATED}).with_columns(sign=pl.lit(1))
    given = _parsed(stats.texts_of("memfree_details"), {"bytes": _ALLOCATED}).with_columns(sign=pl.lit(-1))
    rows = pl.concat([taken, given]).rename({"owner": "event"})
    rows = _with(rows, stats.numbers("device_id").rename({"value": "device"}))
    on_host = events["name"].gather(rows["event"]).cast(pl.String).str.contains("Host")
    return rows.select(
        "event",
        bytes=pl.col("bytes").cast(pl.Int64, strict=False) * pl.col("sign"),
        allocator=events["name"].gather(rows["event"]),
        time_ns=events["start_ns"].gather(rows["event"]),
        device=pl.col("device").cast(pl.Int32, strict=False),
        device_kind=pl.select(pl.when(on_host).then(pl.lit("cpu")).otherwise(pl.lit("gpu")).cast(DeviceKind)).to_series(),
    ).filter(pl.col("bytes").is_not_null())


def counters(events: pl.DataFrame, tracks: pl.DataFrame, stats: Stats) -> pl.DataFrame:
    """Samples of the counters that devices show on a line."""
    lines = tracks.filter(pl.col("what") == "counter")["id"]
    if lines.is_empty():
        return pl.DataFrame()
    rows = events.select("track", pl.int_range(pl.len(), dtype=pl.UInt32).alias("event"), time_ns="start_ns")
    rows = rows.filter(events["track"].is_in(lines.implode()))
    values = stats.reals_of("counter_value", "value").rename({"owner": "event"})
    return rows.join(values, on="event", maintain_order="left").select("track", "time_ns", "value")


def ops(events: pl.DataFrame, scopes: pl.DataFrame) -> pl.DataFrame:
    """Ops, and the work on devices that is known by its op, each with its scope."""
    rows = events.select(event=pl.int_range(pl.len(), dtype=pl.UInt32)).filter(events["kind"] == "op")
    return scopes.join(rows, on="event", how="full", coalesce=True)


def _with(rows: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """The rows with what was found of their events."""
    return rows.join(found.rename({"owner": "event"}), on="event", how="left", maintain_order="left")


def _parsed(texts: pl.DataFrame, parts: dict[str, str], extents: dict[str, str] | None = None) -> pl.DataFrame:
    """What the patterns find in the texts; each distinct text is looked at once."""
    text = pl.col("value").cast(pl.String)
    found = {name: text.str.extract(pattern) for name, pattern in parts.items()}
    for name, pattern in (extents or {}).items():
        sides = [text.str.extract(pattern, group).cast(pl.UInt32, strict=False) for group in (1, 2, 3)]
        whole = pl.all_horizontal(side.is_not_null() for side in sides)
        found[name] = pl.when(whole).then(pl.concat_arr(sides))
    distinct = texts.select(pl.col("value").unique()).with_columns(**found)
    return texts.join(distinct, on="value", how="left", maintain_order="left").drop("value")
