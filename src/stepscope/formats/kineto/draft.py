"""Kineto, PyTorch's profiler: its JSON as a draft of a trace, for CUDA, ROCm, XPU and MTIA."""

from __future__ import annotations

import re
from typing import Any

import polars as pl

from stepscope.formats.chrome.counters import counters
from stepscope.formats.chrome.scan.columns import JsonEvents
from stepscope.formats.kineto.links import kineto_flows, kineto_links
from stepscope.formats.kineto.problems import note_kineto_problems
from stepscope.formats.kineto.rocm import fill_from_launches
from stepscope.formats.kineto.tables import add_tables
from stepscope.formats.kineto.tracks import kineto_tracks
from stepscope.native import order
from stepscope.trace.columns import buffer, series
from stepscope.trace.draft import Draft
from stepscope.trace.frames import take, take_largest
from stepscope.trace.lookup import by_name, by_number, distinct
from stepscope.trace.schema import Kind
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
_CATEGORY_NUMBERS = {category: 2 + number for number, category in enumerate(_KINDS)}
# Older writers had one category for ops and annotations, and ROCm logged copies as kernels.
_ANNOTATION = r"^(ProfilerStep#\d+|enumerate\(Data(Loader|Pipe)\)#|Optimizer\.(step|zero_grad)#)"
_COPY_KERNEL = r"^(__amd_rocclr_copy|MEMORY_COPY|CopyDeviceTo|CopyHostTo|Memcpy )"
_FILL_KERNEL = r"^(__amd_rocclr_fill|Memset )"
_OWN_KEYS = ("deviceProperties", "schemaVersion", "distributedInfo")
_OWN_CATEGORIES = {"cpu_op", "Operator", "kernel", "Kernel", "cuda_runtime", "python_function"}
_OPTIONS = ("record_shapes", "with_stack", "profile_memory", "with_flops", "with_modules")
_VERSIONS = (
    "cuda_runtime_version", "cuda_driver_version", "cupti_version", "hip_runtime_version", "hip_driver_version",
    "roctracer_version", "rocprofiler-sdk_version", "schemaVersion",
)  # fmt: skip


def is_kineto(found: JsonEvents) -> bool:
    """By Kineto's own header, or by its categories."""
    if any(key in found.header for key in _OWN_KEYS):
        return True
    present = distinct(found.events["category"]).to_list()
    return bool(_OWN_CATEGORIES & set(present))


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
        counters=values.frame,
        problems=found.problems,
    )
    add_tables(draft, found)
    fill_from_launches(draft, found.rest)
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
    if isinstance(value, str) and re.fullmatch(r"\s*-?[0-9]{1,19}\s*", value):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**62 else None


def _backend(spread: dict[str, Any]) -> dict[str, Any]:
    return {"distributed_backend": spread["backend"]} if isinstance(spread.get("backend"), str) else {}


def _accelerator(found: JsonEvents) -> str:
    """What kind of device the streams belong to: all use the categories of GPUs."""
    present = distinct(found.events["category"]).cast(pl.String)
    for prefix, kind in (("xpu_", "xpu"), ("privateuse1_", "other")):
        if present.str.starts_with(prefix).any():
            return kind
    return "gpu"


def _kinds(events: pl.DataFrame) -> pl.Series:
    """The kind of each event, judged once for all events that are alike."""
    if events.is_empty():
        return pl.Series("kind", [], dtype=Kind)
    alike = _alike(events)
    rows = series("rows", order.first_rows(buffer(alike), take_largest(alike) + 1), pl.UInt32)
    judged = events.select("category", "name", "ph")[rows].select(_kind().cast(Kind)).to_series()
    return by_number(alike, take(alike, rows), judged).alias("kind")


def _alike(events: pl.DataFrame) -> pl.Series:
    """A number for each event, the same for those that are alike in all that a kind depends on."""
    categories, names = distinct(events["category"]), distinct(events["name"])
    category = pl.Series([_CATEGORY_NUMBERS.get(text, 1) for text in categories], dtype=pl.UInt32)
    text = names.cast(pl.String)
    traits = [
        text == "[memory]",
        *(text.str.contains(each) for each in (_ANNOTATION, _COPY_KERNEL, _FILL_KERNEL)),
    ]
    name = sum(
        (trait.cast(pl.UInt32) * (1 << bit) for bit, trait in enumerate(traits)),
        pl.zeros(len(names), dtype=pl.UInt32, eager=True),
    )
    by_category = by_name(events["category"], categories, category).fill_null(0)
    by_traits = by_name(events["name"], names, name).fill_null(0)
    alike: pl.Series = by_category * 4096 + by_traits * 256 + events["ph"].cast(pl.UInt32)
    return alike


def _kind() -> pl.Expr:
    category, name = pl.col("category").cast(pl.String), pl.col("name").cast(pl.String)
    by_category = category.replace_strict(
        list(_KINDS), list(_KINDS.values()), default=None, return_dtype=pl.String
    )
    return (
        pl.when(pl.col("ph") == ord("C")).then(pl.lit("counter"))
        .when((category.is_null() | (category == "cpu_instant_event")) & (name == "[memory]")).then(pl.lit("memory"))
        .when((category == "Operator") & name.str.contains(_ANNOTATION)).then(pl.lit("annotation"))
        .when(category.is_in(["kernel", "Kernel"]) & name.str.contains(_COPY_KERNEL)).then(pl.lit("copy"))
        .when(category.is_in(["kernel", "Kernel"]) & name.str.contains(_FILL_KERNEL)).then(pl.lit("memset"))
        .when(by_category.is_not_null()).then(by_category)
        .when(pl.col("ph").is_in([ord("i"), ord("I"), ord("R"), ord("n")])).then(pl.lit("instant"))
        .otherwise(pl.lit("span"))
    )  # fmt: skip
