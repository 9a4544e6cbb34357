"""The tables of a Kineto trace beside its events: ops, kernels, copies, memory, collectives, and what is left over."""

from __future__ import annotations

import polars as pl

from stepscope.formats.chrome.scan.columns import JsonEvents
from stepscope.trace.columns import repeated
from stepscope.trace.draft import Draft
from stepscope.trace.frames import filled, kept, take
from stepscope.trace.schema import DeviceKind, Text

Layouts = dict[str, pl.DataFrame]

# c10::DeviceType
_DEVICE_TYPES = {0: "cpu", 1: "gpu", 6: "gpu", 9: "tpu", 12: "xpu", 17: "hpu", 19: "mtia", 20: "other"}
_ITEM_BYTES = {
    "Byte": 1, "Char": 1, "Bool": 1, "Float8_e4m3fn": 1, "Float8_e5m2": 1, "Float8_e4m3fnuz": 1, "Float8_e5m2fnuz": 1,
    "Short": 2, "Half": 2, "BFloat16": 2, "UInt16": 2, "Int": 4, "Float": 4, "UInt32": 4,
    "Long": 8, "Double": 8, "UInt64": 8, "ComplexFloat": 8, "ComplexDouble": 16, "ComplexHalf": 4,
}  # fmt: skip
# HtoD in NVIDIA's names; CopyHostToDevice and MEMORY_COPY_HOST_TO_DEVICE in AMD's.
_LETTERS = r"\b([HDAP])to([HDAP])\b"
_WORDS = r"(?i)(host|device|array|peer)_?to_?(host|device|array|peer)"
_PLACES = r"\((.+?) -> (.+?)\)"
# The layout's columns that a table holds, for those of its rows that the table has.
_IN_TABLES = {
    "op": ("shapes", "dtypes", "concrete_inputs", "sequence", "external_id", "module_hierarchy"),
    "kernel": (
        "registers", "shared_bytes", "blocks_per_sm", "warps_per_sm", "occupancy", "graph_node",
        "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z",
    ),
    "copy": ("bytes",),
    "memory": ("total_allocated", "total_reserved", "address", "memory_bytes", "device_id", "device_type"),
    "collective": (
        "collective", "dtype", "elements", "elements_out", "group_size", "group", "group_ranks", "collective_sequence",
        "peer",
    ),
}  # fmt: skip


def add_tables(draft: Draft, found: JsonEvents) -> None:
    """Fill the draft's tables from the arguments that the scan kept in columns."""
    layouts = found.layouts
    kind = draft.events["kind"]
    has_row = {name: _has_row(name, layout, kind) for name, layout in layouts.items()}
    op, kernel, memory = (kept(layouts[name], has_row[name]) for name in ("op", "kernel", "memory"))
    draft.ops = _ops(op)
    draft.kernels = _kernels(kernel, draft.ops)
    draft.copies = _copies(layouts, draft.events)
    draft.memory = _memory(memory, draft.events["start_ns"])
    draft.collectives = _collectives(layouts["collective"])
    draft.cold = _cold(found, has_row)


def _has_row(name: str, layout: pl.DataFrame, kind: pl.Series) -> pl.Series:
    """Which rows of the layout go into a table: an annotation has an op's arguments, but nothing was computed in it."""
    if name not in ("op", "kernel", "memory"):
        return repeated(True, len(layout), pl.Boolean)
    fits = filled(take(kind, layout["event"]) == name)
    return fits & layout["memory_bytes"].is_not_null() if name == "memory" else fits


def _ops(layout: pl.DataFrame) -> pl.DataFrame:
    return layout.select(
        "event", "shapes", "dtypes", "concrete_inputs", "sequence", "external_id", scope="module_hierarchy"
    )


def _kernels(layout: pl.DataFrame, ops: pl.DataFrame) -> pl.DataFrame:
    """Kernels, with the op of the same external id for those whose launch was not recorded."""
    wanted = layout["external_id"].unique().drop_nulls()
    named = ops.filter(pl.col("external_id").is_in(wanted.implode()) & (pl.col("external_id") > 0))
    named = named.unique("external_id", keep="last").select("external_id", op="event")
    return layout.join(named, on="external_id", how="left", maintain_order="left").select(
        "event",
        "op",
        "blocks_per_sm",
        "warps_per_sm",
        _extent("grid"),
        _extent("block"),
        pl.col("registers").cast(pl.UInt32, strict=False),
        pl.col("shared_bytes").cast(pl.UInt32, strict=False),
        pl.col("occupancy").cast(pl.Float32),
        pl.col("graph_node").reinterpret(signed=False),
    )


def _extent(name: str) -> pl.Expr:
    parts = [pl.col(name + axis).cast(pl.UInt32, strict=False) for axis in ("_x", "_y", "_z")]
    is_whole = pl.all_horizontal(part.is_not_null() for part in parts)
    return pl.when(is_whole).then(pl.concat_arr(parts)).alias(name)


def _copies(layouts: Layouts, events: pl.DataFrame) -> pl.DataFrame:
    """Copies with their direction and the kinds of memory, by the name or ROCm's `kind`."""
    every = pl.concat([layouts[name]["event"] for name in ("copy", "kernel")])
    kind = take(events["kind"], every)
    is_copy = filled((kind == "copy") | (kind == "memset"))
    if not is_copy.any():
        return pl.DataFrame(schema={"event": pl.UInt32, "bytes": pl.Int64})
    kernels = layouts["kernel"].select("event", "rocm_kind", bytes=pl.lit(None, dtype=pl.Int64))
    copies = layouts["copy"].select("event", "rocm_kind", bytes=pl.coalesce("bytes", "size"))
    rows = kept(pl.concat([copies, kernels]), is_copy)
    rows = rows.with_columns(
        name=take(events["name"], rows["event"]).cast(pl.String), told=pl.col("rocm_kind").cast(pl.String)
    )
    ways = [_direction(pl.col(text), pattern) for text in ("name", "told") for pattern in (_LETTERS, _WORDS)]
    places = pl.col("name").str.extract_groups(_PLACES)
    return rows.select(
        "event",
        "bytes",
        direction=pl.coalesce(ways).cast(Text),
        source=places.struct.field("1").cast(Text),
        target=places.struct.field("2").cast(Text),
    )


def _direction(text: pl.Expr, pattern: str) -> pl.Expr:
    ends = text.str.extract_groups(pattern)
    first, last = (ends.struct.field(end).str.slice(0, 1).str.to_uppercase() for end in ("1", "2"))
    return first + "to" + last


def _memory(rows: pl.DataFrame, start: pl.Series) -> pl.DataFrame:
    if rows.is_empty():
        return rows.select("event")
    kinds = rows["device_type"].replace_strict(
        list(_DEVICE_TYPES), list(_DEVICE_TYPES.values()), default="other", return_dtype=DeviceKind
    )
    return rows.select(
        "event",
        "total_allocated",
        "total_reserved",
        device=pl.col("device_id").cast(pl.Int32, strict=False),
        device_kind=kinds,
        time_ns=start.gather(rows["event"]),
        bytes="memory_bytes",
        address=rows["address"].reinterpret(signed=False),
    )


def _collectives(layout: pl.DataFrame) -> pl.DataFrame:
    """The message is the larger side: an all-gather's output, a reduce-scatter's input."""
    if layout.is_empty():
        return layout.select("event")
    item = (
        pl.col("dtype")
        .cast(pl.String)
        .replace_strict(list(_ITEM_BYTES), list(_ITEM_BYTES.values()), default=None, return_dtype=pl.Int64)
    )
    return layout.select(
        "event",
        "dtype",
        "elements",
        "elements_out",
        "group",
        "group_ranks",
        name="collective",
        bytes=pl.max_horizontal("elements", "elements_out") * item,
        group_size=pl.col("group_size").cast(pl.Int32, strict=False),
        sequence="collective_sequence",
        peer=pl.col("peer").cast(pl.Int32, strict=False),
    )


def _cold(found: JsonEvents, has_row: dict[str, pl.Series]) -> Layouts:
    """Arguments that no table holds: columns that have no place there, and whole rows that got none."""
    cold: Layouts = {}
    for name, layout in found.layouts.items():
        if layout.is_empty():
            continue
        held = layout[[column for column in layout.columns if column not in _IN_TABLES.get(name, ())]]
        if has_row[name].all():
            cold[name] = held
        else:
            cold[name] = held.filter(has_row[name])
            cold[f"{name} without a row"] = layout.filter(~has_row[name])
    cold["rest"] = found.rest
    return {
        name: frame for name, frame in ((n, _without_empty(f)) for n, f in cold.items()) if frame.width > 1
    }


def _without_empty(frame: pl.DataFrame) -> pl.DataFrame:
    """Only the columns in which anything was said."""
    said = [name for name in frame.columns if name == "event" or frame[name].null_count() < len(frame)]
    return frame[said]
