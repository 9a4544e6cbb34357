"""Kernels, copies, allocations, ops and collectives, from the stats that say more of an event than when it was."""

from __future__ import annotations

import polars as pl

from stepscope.formats.xplane.stats import Stats, values_at
from stepscope.trace.schema import DeviceKind, Text

_NUMBER = r"(\d+)"
_EXTENT = r"(\d+),(\d+),(\d+)"
_KERNEL = {
    "registers": rf"(?:regs|registers_per_thread):{_NUMBER}",
    "static": rf"static_shared(?:_memory_usage)?:{_NUMBER}",
    "dynamic": rf"dynamic_shared(?:_memory_usage)?:{_NUMBER}",
    "occupancy": r"occ_pct:([\d.]+)",
}
_EXTENTS = {"grid": f"grid:{_EXTENT}", "block": f"block:{_EXTENT}"}
_COPY = {
    "bytes": rf"(?:size|num_bytes):{_NUMBER}",
    "source": r"kind_src:(\S+)",
    "target": r"kind_dst:(\S+)",
    "memory": r"\bkind:(\S+)",
}
_ENDS = r"(?i)memcpy_?([HDPA])(?:2|to)([HDPA])"
_SIDE = {"device": "D", "array": "A", "pageable": "H", "pinned": "H", "host": "H"}
_ALLOCATED = {"bytes": rf"num_bytes:{_NUMBER}"}
_ALLOCATOR_DEVICE = r"(?i)\b(gpu|tpu|xpu)_(\d+)_"


def kernels(events: pl.DataFrame, stats: Stats) -> pl.DataFrame:
    """Launch configuration of the kernels, as far as the file has it."""
    rows = _rows(events["kind"] == "kernel")
    if rows.is_empty():
        return pl.DataFrame()
    details = _parsed(values_at(rows, stats.texts_of("kernel_details")), _KERNEL, _EXTENTS)
    given = values_at(rows, stats.reals_of("theoretical_occupancy_pct"))
    occupancy = pl.coalesce(given, pl.col("occupancy").cast(pl.Float64, strict=False))
    return details.select(
        "grid",
        "block",
        event=rows,
        graph_node=values_at(rows, stats.words_of("cuda_graph_node_id")),
        registers=_whole("registers", pl.UInt32),
        shared_bytes=(_whole("static", pl.UInt64) + _whole("dynamic", pl.UInt64)).cast(
            pl.UInt32, strict=False
        ),
        occupancy=pl.when(occupancy > 0).then(occupancy).cast(pl.Float32),  # 0 is what XLA writes for ROCm
    )


def copies(events: pl.DataFrame, stats: Stats, moved: pl.DataFrame) -> pl.DataFrame:
    """Copies and fills: how many bytes, from where to where; those of TPUs are in `moved`."""
    rows = _rows(events["kind"].is_in(["copy", "memset"]))
    if len(moved):
        rows = rows.filter(~rows.is_in(moved["event"].implode()))
    if rows.is_empty():
        return moved
    details = _parsed(values_at(rows, stats.texts_of("memcpy_details", "memset_details")), _COPY)
    ends = _parsed(events["name"].gather(rows), {"first": _ENDS}, second={"second": _ENDS})
    by_name = pl.concat_str(
        [ends["first"].str.to_uppercase(), pl.lit("to"), ends["second"].str.to_uppercase()]
    )
    sides = [
        pl.col(side).replace_strict(list(_SIDE), list(_SIDE.values()), default=None)
        for side in ("source", "target")
    ]
    described = details.select(
        event=rows,
        bytes=_whole("bytes", pl.Int64),
        direction=pl.coalesce(by_name, sides[0] + "to" + sides[1]).cast(Text),
        source=pl.col("source").cast(Text),
        target=pl.coalesce("target", "memory").cast(Text),
    )
    return pl.concat([described, moved]) if len(moved) else described


def memory(events: pl.DataFrame, stats: Stats) -> pl.DataFrame:
    """Allocations and releases: those that allocators report, and those that drivers were asked for."""
    sources = (_allocator_rows, _tpu_rows, _driver_rows)
    found = [frame for rows in sources if len(frame := rows(events, stats))]
    return pl.concat(found, how="diagonal") if found else pl.DataFrame()


def _allocator_rows(events: pl.DataFrame, stats: Stats) -> pl.DataFrame:
    told = stats.texts_of("allocator_name")
    told = told.filter(events["kind"].gather(told["owner"]) == "memory")
    if told.is_empty():
        return pl.DataFrame()
    rows = told["owner"]
    sign = _parsed(events["name"].gather(rows), {"released": "(?i)(dealloc|free)"})["released"].is_not_null()
    size = values_at(rows, stats.numbers("allocation_bytes"))
    place = _parsed(told["value"], {"kind": _ALLOCATOR_DEVICE}, second={"ordinal": _ALLOCATOR_DEVICE})
    return place.select(
        event=rows,
        allocator=told["value"],
        device=_whole("ordinal", pl.Int32),
        device_kind=pl.coalesce(pl.col("kind").str.to_lowercase(), pl.lit("cpu")).cast(DeviceKind),
        time_ns=events["start_ns"].gather(rows),
        bytes=pl.when(sign).then(-size).otherwise(size),
        requested=values_at(rows, stats.numbers("requested_bytes")),
        address=values_at(rows, stats.words_of("addr")),
        total_allocated=values_at(rows, stats.numbers("bytes_allocated")),
        total_reserved=values_at(rows, stats.numbers("bytes_reserved")),
    )


def _tpu_rows(events: pl.DataFrame, stats: Stats) -> pl.DataFrame:
    """TPUs name no allocator: the number of the device on its host says whose memory it is."""
    indices = stats.numbers("index_on_host")
    named = stats.texts_of("allocator_name")["owner"]
    indices = indices.filter(
        (events["kind"].gather(indices["owner"]) == "memory") & ~indices["owner"].is_in(named.implode())
    )
    if indices.is_empty():
        return pl.DataFrame()
    rows = indices["owner"]
    released = events["name"].gather(rows).cast(pl.String).str.contains("(?i)dealloc|free")
    size = values_at(rows, stats.numbers("allocation_bytes"))
    return pl.DataFrame({"event": rows, "device": indices["value"]}).select(
        "event",
        pl.col("device").cast(pl.Int32, strict=False),
        allocator=pl.lit("HBM", dtype=Text),
        device_kind=pl.lit("tpu", dtype=DeviceKind),
        time_ns=events["start_ns"].gather(rows),
        bytes=pl.when(released).then(-size).otherwise(size),
        requested=values_at(rows, stats.numbers("requested_bytes")),
        address=values_at(rows, stats.words_of("addr")),
        total_allocated=values_at(rows, stats.numbers("bytes_allocated")),
        total_reserved=values_at(rows, stats.numbers("bytes_reserved")),
    )


def _driver_rows(events: pl.DataFrame, stats: Stats) -> pl.DataFrame:
    """What was asked of a driver. Memory that it gives on the host has a name that says so."""
    taken, given = stats.texts_of("memalloc_details"), stats.texts_of("memfree_details")
    if taken.is_empty() and given.is_empty():
        return pl.DataFrame()
    told = pl.concat([taken, given])
    rows, name = told["owner"], events["name"].gather(told["owner"])
    on_host = name.cast(pl.String).str.contains("Host")
    sign = pl.Series([1] * len(taken) + [-1] * len(given), dtype=pl.Int64)
    return _parsed(told["value"], _ALLOCATED).select(
        event=rows,
        bytes=_whole("bytes", pl.Int64) * sign,
        allocator=name,
        time_ns=events["start_ns"].gather(rows),
        device=values_at(rows, stats.numbers("device_id")).cast(pl.Int32, strict=False),
        device_kind=pl.when(on_host).then(pl.lit("cpu")).otherwise(pl.lit("gpu")).cast(DeviceKind),
    ).filter(pl.col("bytes").is_not_null())  # fmt: skip


def counters(events: pl.DataFrame, tracks: pl.DataFrame, stats: Stats) -> pl.DataFrame:
    """Samples of the counters that devices show on a line."""
    lines = tracks.filter(pl.col("what") == "counter")["id"]
    rows = _rows(events["track"].is_in(lines.implode()))
    if rows.is_empty():
        return pl.DataFrame()
    return pl.DataFrame(
        {
            "track": events["track"].gather(rows),
            "time_ns": events["start_ns"].gather(rows),
            "value": values_at(rows, stats.reals_of("counter_value", "value")),
        }
    ).drop_nulls()


def ops(events: pl.DataFrame, scopes: pl.DataFrame, core: pl.Series, overlaps: pl.Series) -> pl.DataFrame:
    """Ops, and the work on devices that is known by its op, each with its scope.

    What the tracks `core` show are instructions, each of them an op; those of `overlaps` show the same ones once more.
    """
    scopes = scopes.filter(~events["track"].gather(scopes["event"]).is_in(overlaps.implode()))
    known = pl.repeat(False, len(events), eager=True).scatter(scopes["event"], True)
    is_op = (events["kind"] == "op") | (
        events["kind"].is_in(["kernel", "copy"]) & events["track"].is_in(core.implode())
    )
    rest = _rows(is_op & ~known)
    return pl.concat([scopes, pl.DataFrame({"event": rest})], how="diagonal") if len(rest) else scopes


def _rows(wanted: pl.Series) -> pl.Series:
    rows: pl.Series = wanted.arg_true().cast(pl.UInt32)
    return rows


def _whole(name: str, dtype: type[pl.DataType]) -> pl.Expr:
    return pl.col(name).cast(dtype, strict=False)


def _parsed(
    texts: pl.Series,
    parts: dict[str, str],
    extents: dict[str, str] | None = None,
    second: dict[str, str] | None = None,
) -> pl.DataFrame:
    """What the patterns find in the texts: their first group, or their second, or three numbers.

    Each distinct text is looked at once.
    """
    distinct = texts.unique().drop_nulls()
    text = distinct.cast(pl.String)
    found = {name: text.str.extract(pattern) for name, pattern in parts.items()}
    found |= {name: text.str.extract(pattern, 2) for name, pattern in (second or {}).items()}
    found |= {name: _extent(text, pattern) for name, pattern in (extents or {}).items()}
    number = pl.int_range(len(distinct), dtype=pl.UInt32, eager=True)
    at = values_at(texts.to_physical(), pl.DataFrame({"owner": distinct.to_physical(), "value": number}))
    return pl.DataFrame({name: column.gather(at) for name, column in found.items()})


def _extent(text: pl.Series, pattern: str) -> pl.Series:
    """Three numbers, or null where one of them is missing or absurd."""
    sides = [
        text.str.extract(pattern, group).cast(pl.UInt32, strict=False).alias(str(group))
        for group in (1, 2, 3)
    ]
    whole = pl.all_horizontal(pl.all().is_not_null())
    return pl.DataFrame(sides).select(pl.when(whole).then(pl.concat_arr(pl.all()))).to_series()


def collectives(events: pl.DataFrame, stats: Stats) -> pl.DataFrame:
    """TensorFlow's collectives, by the keys that its workers agree on: event, name, group, sequence.

    TensorFlow 1 graphs give an op the same key in every step, which numbers nothing.
    """
    keys = stats.numbers("instance_key")
    if keys.is_empty():
        return pl.DataFrame()
    group = values_at(keys["owner"], stats.numbers("group_key"))
    found = keys.select(
        event="owner",
        name=events["name"].gather(keys["owner"]),
        group=group.cast(pl.String),
        sequence="value",
    )
    again = pl.struct("name", "group", "sequence").is_duplicated()
    return found.with_columns(sequence=pl.when(~again.any()).then("sequence"))
