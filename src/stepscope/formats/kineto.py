"""Kineto, PyTorch's profiler: its JSON as a draft of a trace, for CUDA, ROCm, XPU and MTIA."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.formats.json_counters import counters
from stepscope.formats.json_events import JsonEvents
from stepscope.formats.kineto_links import kineto_flows, kineto_links
from stepscope.formats.kineto_problems import note_kineto_problems
from stepscope.formats.kineto_tracks import kineto_tracks
from stepscope.trace.draft import Draft
from stepscope.trace.schema import DeviceKind, Kind, Text
from stepscope.trace.trace import TraceInfo

_KINDS = {
    "cpu_op": "op",
    "Operator": "op",
    "hpu_op": "kernel",
    "user_annotation": "annotation",
    "gpu_user_annotation": "annotation",
    "python_function": "python",
    "PythonFunction": "python",
    "cuda_runtime": "runtime",
    "cuda_driver": "runtime",
    "Runtime": "runtime",
    "xpu_runtime": "runtime",
    "xpu_driver": "runtime",
    "mtia_runtime": "runtime",
    "glow_runtime": "runtime",
    "privateuse1_runtime": "runtime",
    "privateuse1_driver": "runtime",
    "kernel": "kernel",
    "Kernel": "kernel",
    "mtia_ccp_events": "kernel",
    "gpu_memcpy": "copy",
    "Memcpy": "copy",
    "gpu_memset": "memset",
    "Memset": "memset",
    "cuda_sync": "sync",
    "cuda_event": "sync",
    "xpu_sync": "sync",
    "overhead": "overhead",
    "cpu_instant_event": "instant",
}
# Older writers had one category for ops and annotations, and ROCm logged copies as kernels.
_ANNOTATION = r"^(ProfilerStep#\d+|enumerate\(Data(Loader|Pipe)\)#|Optimizer\.(step|zero_grad)#)"
_COPY_KERNEL = r"^(__amd_rocclr_copy|MEMORY_COPY|CopyDeviceTo|CopyHostTo|Memcpy )"
_FILL_KERNEL = r"^(__amd_rocclr_fill|Memset )"
_DIRECTION = r"([HDAP](?:ost)?(?:evice)?)\w*?[tT]o([HDAP])"
_DEVICE_TYPES = {0: "cpu", 1: "gpu", 6: "gpu", 9: "tpu", 12: "xpu", 17: "hpu", 19: "mtia", 20: "other"}
_ITEM_BYTES = {
    "Byte": 1, "Char": 1, "Bool": 1, "Float8_e4m3fn": 1, "Float8_e5m2": 1, "Float8_e4m3fnuz": 1, "Float8_e5m2fnuz": 1,
    "Short": 2, "Half": 2, "BFloat16": 2, "UInt16": 2, "Int": 4, "Float": 4, "UInt32": 4,
    "Long": 8, "Double": 8, "UInt64": 8, "ComplexFloat": 8, "ComplexDouble": 16, "ComplexHalf": 4,
}  # fmt: skip
_OPTIONS = ("record_shapes", "with_stack", "profile_memory", "with_flops", "with_modules")
_VERSIONS = (
    "cuda_runtime_version", "cuda_driver_version", "cupti_version", "hip_runtime_version", "hip_driver_version",
    "roctracer_version", "rocprofiler-sdk_version", "schemaVersion",
)  # fmt: skip


def is_kineto(found: JsonEvents) -> bool:
    """By Kineto's own header, or by its categories."""
    if (
        "deviceProperties" in found.header
        or "baseTimeNanoseconds" in found.header
        or "distributedInfo" in found.header
    ):
        return True
    present = found.events["category"].unique().cast(pl.String).drop_nulls().to_list()
    return bool({"cpu_op", "Operator", "kernel", "Kernel", "cuda_runtime", "python_function"} & set(present))


def kineto_draft(found: JsonEvents, path: str) -> Draft:
    """The tables of the trace."""
    info = _info(found.header, path)
    table, track = kineto_tracks(found, _accelerator(found))
    events = found.events.select(
        "name",
        source_category="category",
        kind=_kinds(found.events),
        start_ns="start",
        dur_ns="dur",
    ).with_columns(track=track)
    values = counters(found, table, events)
    draft = Draft(
        info=info,
        events=events.with_columns(track=values.track),
        tracks=table.frame(),
        links=kineto_links(found),
        flows=kineto_flows(found),
        ops=_ops(found.layouts["op"], events),
        kernels=_kernels(found.layouts, events),
        copies=_copies(found.layouts, events),
        memory=_memory(found.layouts["memory"], events),
        collectives=_collectives(found.layouts["collective"]),
        counters=values.frame,
        cold=_cold(found),
        problems=found.problems,
    )
    note_kineto_problems(draft, found.header)
    return draft


def _info(header: dict[str, Any], path: str) -> TraceInfo:
    spread = header.get("distributedInfo")
    spread = spread if isinstance(spread, dict) else {}
    devices = header.get("deviceProperties")
    versions = {name: header[name] for name in _VERSIONS if name in header}
    if "nccl_version" in spread:
        versions["nccl_version"] = spread["nccl_version"]
    if "pytorch_version" in header:
        versions["torch"] = header["pytorch_version"]
    host = header.get("host_name") or header.get("hostname")
    return TraceInfo(
        path=path,
        format="kineto",
        framework="pytorch",
        rank=_int(spread.get("rank")),
        world_size=_int(spread.get("world_size")),
        host=host if isinstance(host, str) else None,
        base_unix_ns=_int(header.get("baseTimeNanoseconds")) or 0,
        devices=[device for device in devices if isinstance(device, dict)]
        if isinstance(devices, list)
        else [],
        versions=versions,
        capture_options={name: bool(header.get(name)) for name in _OPTIONS} | _backend(spread),
    )


def _int(value: Any) -> int | None:
    """A number of sane size, also from text: headers come from anywhere."""
    if isinstance(value, str) and value.strip().lstrip("-").isdigit():
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**62 else None


def _backend(spread: dict[str, Any]) -> dict[str, Any]:
    return {"distributed_backend": spread["backend"]} if isinstance(spread.get("backend"), str) else {}


def _accelerator(found: JsonEvents) -> str:
    """What kind of device the streams belong to: XPU traces use the categories of GPUs."""
    present = found.events["category"].unique().cast(pl.String).drop_nulls()
    return "xpu" if present.str.starts_with("xpu_").any() else "gpu"


def _kinds(events: pl.DataFrame) -> pl.Series:
    """The kind of each event, judged once per name and category."""
    unique = events.select("category", "name", "ph").unique()
    category, name = pl.col("category").cast(pl.String), pl.col("name").cast(pl.String)
    by_category = category.replace_strict(
        list(_KINDS), list(_KINDS.values()), default=None, return_dtype=pl.String
    )
    kind = (
        pl.when(pl.col("ph") == ord("C")).then(pl.lit("counter"))
        .when((category.is_null() | (category == "cpu_instant_event")) & (name == "[memory]")).then(pl.lit("memory"))
        .when((category == "Operator") & name.str.contains(_ANNOTATION)).then(pl.lit("annotation"))
        .when(category.is_in(["kernel", "Kernel"]) & name.str.contains(_COPY_KERNEL)).then(pl.lit("copy"))
        .when(category.is_in(["kernel", "Kernel"]) & name.str.contains(_FILL_KERNEL)).then(pl.lit("memset"))
        .when(by_category.is_not_null()).then(by_category)
        .when(pl.col("ph").is_in([ord("i"), ord("I"), ord("R"), ord("n")])).then(pl.lit("instant"))
        .otherwise(pl.lit("span"))
    )  # fmt: skip
    judged = unique.with_columns(kind=kind.cast(Kind))
    return events.join(
        judged, on=["category", "name", "ph"], how="left", nulls_equal=True, maintain_order="left"
    )["kind"]


def _ops(layout: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """Rows for ops alone: annotations carry the same arguments, but nothing was computed in them."""
    is_op = events["kind"].gather(layout["event"]) == "op"
    return layout.filter(is_op).select(
        "event", "shapes", "dtypes", "concrete_inputs", "sequence", "external_id", scope="module_hierarchy"
    )


def _kernels(layouts: dict[str, pl.DataFrame], events: pl.DataFrame) -> pl.DataFrame:
    """Kernels, with the op of the same external id for those whose launch was not recorded."""
    layout = layouts["kernel"]
    is_kernel = events["kind"].gather(layout["event"]) == "kernel"
    named = layouts["op"].filter(pl.col("external_id") > 0).unique("external_id", keep="last")
    named = named.select("external_id", op="event")
    rows = layout.filter(is_kernel).join(named, on="external_id", how="left", maintain_order="left")
    return rows.select(
        "event",
        "op",
        "blocks_per_sm",
        "warps_per_sm",
        _extent("grid"),
        _extent("block"),
        pl.col("registers").cast(pl.UInt32, strict=False),
        pl.col("shared_bytes").cast(pl.UInt32, strict=False),
        pl.col("occupancy").cast(pl.Float32),
        pl.col("graph_node").cast(pl.UInt64, strict=False),
    )


def _extent(name: str) -> pl.Expr:
    parts = [pl.col(name + axis).cast(pl.UInt32, strict=False) for axis in ("_x", "_y", "_z")]
    return (
        pl.when(pl.all_horizontal(part.is_not_null() for part in parts))
        .then(pl.concat_arr(parts))
        .alias(name)
    )


def _copies(layouts: dict[str, pl.DataFrame], events: pl.DataFrame) -> pl.DataFrame:
    """Copies with their direction and the kinds of memory, as the name tells them."""
    kernels = layouts["kernel"].select("event", bytes=pl.lit(None, dtype=pl.Int64))
    found = pl.concat([layouts["copy"].select("event", pl.coalesce("bytes", "size").alias("bytes")), kernels])
    rows = found.filter(events["kind"].gather(found["event"]).is_in(["copy", "memset"]))
    name = events["name"].gather(rows["event"]).cast(pl.String)
    ends = name.str.extract_groups(_DIRECTION)
    memory = name.str.extract_groups(r"\((.+?) -> (.+?)\)")
    first = ends.struct.field("1").str.slice(0, 1)
    return rows.with_columns(
        direction=(first + "to" + ends.struct.field("2")).cast(Text),
        source=memory.struct.field("1").cast(Text),
        target=memory.struct.field("2").cast(Text),
    )


def _memory(layout: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    rows = layout.filter(pl.col("memory_bytes").is_not_null())
    kinds = rows["device_type"].replace_strict(
        list(_DEVICE_TYPES), list(_DEVICE_TYPES.values()), default="other", return_dtype=DeviceKind
    )
    return rows.select(
        "event",
        "total_allocated",
        "total_reserved",
        device=pl.col("device_id").cast(pl.Int32, strict=False),
        device_kind=kinds,
        time_ns=events["start_ns"].gather(rows["event"]),
        bytes="memory_bytes",
        address=rows["address"].reinterpret(signed=False),
    )


def _collectives(layout: pl.DataFrame) -> pl.DataFrame:
    """The message is the larger side: an all-gather's output, a reduce-scatter's input."""
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
    )


_IN_TABLES = {
    "op": ("shapes", "dtypes", "concrete_inputs", "sequence", "module_hierarchy"),
    "kernel": ("registers", "shared_bytes", "blocks_per_sm", "warps_per_sm", "occupancy", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "graph_node"),
    "memory": ("total_allocated", "total_reserved", "address", "memory_bytes", "device_id", "device_type"),
    "collective": ("collective", "dtype", "elements", "elements_out", "group_size", "group", "group_ranks", "collective_sequence"),
}  # fmt: skip


def _cold(found: JsonEvents) -> dict[str, pl.DataFrame]:
    """Arguments that no table has a column for."""
    cold = {}
    for name, layout in found.layouts.items():
        left = layout.drop(_IN_TABLES.get(name, ()))
        kept = [
            column for column in left.columns if column == "event" or left[column].null_count() < len(left)
        ]
        if len(kept) > 1:
            cold[name] = left.select(kept)
    if len(found.rest):
        cold["rest"] = found.rest
    return cold
