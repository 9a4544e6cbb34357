"""A recording of rocprofv3 as a draft of a trace: kernels and copies by queue, calls and markers by thread."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.errors import UnreadableFile
from stepscope.formats.reader import Progress
from stepscope.formats.rocprof import FORMAT
from stepscope.formats.rocprof.document import (
    Tool,
    any_value,
    decode,
    read_markers,
    read_operations,
    record_frame,
    symbol_frame,
)
from stepscope.formats.source import Source
from stepscope.native.checks import ROW_LIMIT
from stepscope.native.spans.lanes import lanes
from stepscope.trace.columns import buffer, series
from stepscope.trace.draft import Draft
from stepscope.trace.problems import problem
from stepscope.trace.schema import TABLES, Kind, LinkReason, Text
from stepscope.trace.trace import TraceInfo

_LATEST = 2**62
_GPU = 2  # the type of an agent
# What is recorded of threads; the rest is work of devices, or not times.
_CALLS = {"hip_api": "runtime", "hsa_api": "runtime", "rccl_api": "runtime", "marker_api": "annotation"}
_SCRATCH = {"scratch_memory": "overhead"}
_KEY = ("process", "agent", "queue", "thread", "lane")
_WAYS = r"(HOST|DEVICE)_TO_(HOST|DEVICE)"


def read(source: Source, progress: Progress) -> Draft:
    """All processes of the file."""
    data = source.content()
    progress(source.size())
    tools = decode(memoryview(data), source.path)
    found = [_collect(number, tool) for number, tool in enumerate(tools)]
    rows = pl.concat([frame for frame, _ in found], how="diagonal") if found else pl.DataFrame()
    if rows.is_empty():
        raise UnreadableFile(
            f"{source.path} holds no events.",
            fix="Record with: rocprofv3 --runtime-trace --output-format json -- python train.py",
        )
    if len(rows) >= ROW_LIMIT:
        raise UnreadableFile(f"{source.path} holds {len(rows):,} events, more than can be numbered.")
    draft = _make_draft(rows, tools, source.path)
    damaged = sum(count for _, count in found)
    if damaged:
        draft.problems.add(
            problem(
                "damaged-events",
                "{count} records are not what rocprofv3 writes; they were left out.",
                count=damaged,
            )
        )
    for each in source.problems.all():
        draft.problems.add(each)
    return draft


def _collect(process: int, tool: Tool) -> tuple[pl.DataFrame, int]:
    """The records of one process, and how many were damaged."""
    strings = any_value(tool.strings, {})
    operations = pl.DataFrame(
        list(read_operations(strings)),
        schema={"kind": pl.Int64, "operation": pl.Int64, "operation_name": pl.String},
        orient="row",
    )
    pieces, damaged = [], 0
    for name, raw in tool.buffer_records.items():
        if name not in ("kernel_dispatch", "memory_copy", *_CALLS, *_SCRATCH):
            continue
        frame, lost = record_frame(raw)
        start, end = pl.col("start_timestamp"), pl.col("end_timestamp")
        kept = frame.filter(start.is_between(1, _LATEST), end.is_between(start, _LATEST))
        damaged += lost + len(frame) - len(kept)
        named = kept.join(operations, on=["kind", "operation"], how="left", maintain_order="left")
        pieces.append(_describe(name, named, tool, strings).with_columns(category=pl.lit(name)))
    if not pieces:
        return pl.DataFrame(), damaged
    return pl.concat(pieces, how="diagonal").with_columns(process=pl.lit(process)), damaged


def _describe(table: str, rows: pl.DataFrame, tool: Tool, strings: dict[str, Any]) -> pl.DataFrame:
    common = rows.select(
        "operation_name",
        "bytes",
        "dispatch_info",
        "src_agent_id",
        "dst_agent_id",
        start="start_timestamp",
        end="end_timestamp",
        thread="thread_id",
        correlation=pl.col("correlation_id").struct.field("internal"),
    )
    if table == "kernel_dispatch":
        return _describe_kernels(common, symbol_frame(tool.kernel_symbols))
    plain = common.drop("dispatch_info", "src_agent_id", "dst_agent_id")
    if table == "memory_copy":
        return _describe_copies(common, any_value(tool.agents, []))
    if table in _SCRATCH:
        return plain.with_columns(
            name=pl.col("operation_name").fill_null(table), sort=pl.lit(_SCRATCH[table])
        )
    if table == "marker_api":
        texts = pl.DataFrame(
            list(read_markers(strings)), schema={"correlation": pl.Int64, "text": pl.String}, orient="row"
        )
        plain = plain.join(
            texts.unique("correlation", keep="first"), on="correlation", how="left", maintain_order="left"
        )
        name = pl.coalesce("text", "operation_name")
    else:
        name = pl.col("operation_name")
    return plain.with_columns(name=name.fill_null("(call without a name)"), sort=pl.lit(_CALLS[table]))


def _describe_kernels(rows: pl.DataFrame, symbols: pl.DataFrame) -> pl.DataFrame:
    info = pl.col("dispatch_info").struct
    threads, group = info.field("grid_size").struct, info.field("workgroup_size").struct
    rows = rows.with_columns(
        kernel_id=info.field("kernel_id"),
        agent=info.field("agent_id").struct.field("handle"),
        queue=info.field("queue_id").struct.field("handle"),
        shared=info.field("group_segment_size"),
        **{f"block_{axis}": group.field(axis) for axis in "xyz"},
        **{
            f"grid_{axis}": (threads.field(axis) + group.field(axis) - 1)
            // pl.when(group.field(axis) > 0).then(group.field(axis))
            for axis in "xyz"
        },
    )
    known = symbols.drop_nulls("kernel_id").unique("kernel_id", keep="first")
    rows = rows.join(known, on="kernel_id", how="left", maintain_order="left")
    names = [
        pl.when(~pl.col(name).is_in(["", "0"])).then(name)
        for name in ("formatted_kernel_name", "kernel_name")
    ]
    name = pl.coalesce(names).str.strip_suffix(".kd").fill_null("(kernel without a name)")
    return rows.with_columns(name=name, sort=pl.lit("kernel"), registers="arch_vgpr_count").drop(
        "dispatch_info", "src_agent_id", "dst_agent_id"
    )


def _describe_copies(rows: pl.DataFrame, agents: list[Any]) -> pl.DataFrame:
    """On the device that takes part; between two, on the one that receives."""
    gpus = [handle for handle, _ in _list_gpus(agents)]
    source, target = (pl.col(name).struct.field("handle") for name in ("src_agent_id", "dst_agent_id"))
    ends = pl.col("operation_name").str.extract_groups(_WAYS)
    first, last = (ends.struct.field(end).str.slice(0, 1) for end in ("1", "2"))
    agent = pl.when(target.is_in(gpus)).then(target).when(source.is_in(gpus)).then(source).otherwise(target)
    return rows.with_columns(
        name=pl.col("operation_name").fill_null("MEMORY_COPY"),
        direction=first + "to" + last,
        agent=agent,
        queue=pl.lit(-1, dtype=pl.Int64),
        sort=pl.lit("copy"),
    ).drop("dispatch_info", "src_agent_id", "dst_agent_id")


def _list_gpus(agents: list[Any]) -> list[tuple[int, dict[str, Any]]]:
    """The GPUs with the handles by which records name them."""
    found = []
    for each in agents:
        named = each.get("id") if isinstance(each, dict) else None
        handle = named.get("handle") if isinstance(named, dict) else None
        if isinstance(handle, int) and each.get("type") == _GPU and abs(handle) < _LATEST:
            found.append((handle, each))
    return found


def _make_draft(rows: pl.DataFrame, tools: list[Tool], path: str) -> Draft:
    wanted = ("agent", "queue", "direction", "bytes", "registers", "shared", "grid_x", "block_x")
    absent = [
        pl.lit(None, dtype=pl.String if name == "direction" else pl.Int64).alias(name)
        for name in wanted
        if name not in rows.columns
    ]
    rows = _with_lanes(rows.with_columns(*absent).with_row_index("row"))
    gpus = _list_gpus(any_value(tools[0].agents, []))
    tracks = _make_tracks(rows, tools, _number_devices(rows, gpus))
    rows = rows.join(tracks.select("id", *_KEY), on=_KEY, how="left", nulls_equal=True, maintain_order="left")
    zero = int(str(rows["start"].min()))
    return Draft(
        info=_make_info(tools, path, gpus, rows),
        events=rows.select(
            track=pl.col("id").cast(pl.UInt32),
            name=pl.col("name").cast(Text),
            kind=pl.col("sort").cast(Kind),
            source_category=pl.col("category").cast(Text),
            start_ns=pl.col("start") - zero,
            dur_ns=pl.col("end") - pl.col("start"),
        ),
        tracks=tracks.select(
            "id", "stream", "device", "device_kind", "what", "pid", "tid", process="title", thread="label"
        ).select(name for name in TABLES["tracks"]),
        links=_link_launches(rows),
        kernels=_list_kernels(rows),
        copies=rows.filter(pl.col("sort") == "copy").select(
            event="row", bytes="bytes", direction=pl.col("direction").cast(Text)
        ),
    )


def _number_devices(rows: pl.DataFrame, gpus: list[tuple[int, dict[str, Any]]]) -> dict[int, int]:
    """GPUs in the order of the file, then agents that it does not describe."""
    numbers = {handle: number for number, (handle, _) in enumerate(gpus)}
    for handle in rows["agent"].drop_nulls().unique().sort().to_list():
        numbers.setdefault(handle, len(numbers))
    return numbers


def _with_lanes(rows: pl.DataFrame) -> pl.DataFrame:
    """Kernels of one queue may overlap: each lane has those that do not. Threads have the track of their calls."""
    is_device = pl.col("agent").is_not_null()
    rows = rows.with_columns(
        lane=pl.lit(0, dtype=pl.UInt32),
        thread=pl.when(~is_device).then("thread"),
        queue=pl.when(is_device).then("queue"),
    )
    pieces = []
    on_devices = rows.filter(is_device).sort("start")
    for _, group in on_devices.group_by("process", "agent", "queue", maintain_order=True):
        found = lanes(buffer(group["start"]), buffer(group["end"]))
        pieces.append(group.select("row", found=series("found", found, pl.UInt32)))
    if not pieces:
        return rows
    placed = pl.concat(pieces)
    return rows.with_columns(lane=rows["lane"].scatter(placed["row"], placed["found"]))


def _make_tracks(rows: pl.DataFrame, tools: list[Tool], numbers: dict[int, int]) -> pl.DataFrame:
    keys = rows.select(_KEY).unique().sort("process", "thread", "agent", "queue", "lane", nulls_last=True)
    pids = {at: str(any_value(tool.metadata, {}).get("pid", at)) for at, tool in enumerate(tools)}
    on_device = pl.col("agent").is_not_null()
    device = pl.col("agent").replace_strict(numbers, default=None, return_dtype=pl.Int32)
    pid = pl.col("process").replace_strict(pids, return_dtype=pl.String)
    queue = (
        pl.when(pl.col("queue") < 0)
        .then(pl.lit("copies"))
        .otherwise(pl.format("queue {}", pl.col("queue").fill_null(0)))
    )
    lane = pl.when(pl.col("lane") > 0).then(pl.format(" (lane {})", pl.col("lane") + 1)).otherwise(pl.lit(""))
    return keys.with_row_index("id").with_columns(
        title=pl.when(on_device)
        .then(pl.format("GPU {}", device.fill_null(-1)))
        .otherwise(pl.format("process {}", pid)),
        label=pl.when(on_device)
        .then(queue + lane)
        .otherwise(pl.format("thread {}", pl.col("thread").fill_null(0))),
        stream=pl.when(on_device).then("queue"),
        device=pl.when(on_device).then(device),
        device_kind=pl.when(on_device).then(pl.lit("gpu")).otherwise(pl.lit("cpu")),
        what=pl.when(on_device).then(pl.lit("device")).otherwise(pl.lit("host")),
        pid=pid,
        tid=pl.coalesce(pl.col("thread").cast(pl.String), pl.col("queue").cast(pl.String)),
    )


def _make_info(
    tools: list[Tool], path: str, gpus: list[tuple[int, dict[str, Any]]], rows: pl.DataFrame
) -> TraceInfo:
    node = any_value(tools[0].metadata, {}).get("node")
    host = node.get("hostname") if isinstance(node, dict) else None
    used = set(rows["agent"].drop_nulls().unique().to_list())
    has_torch = rows.select(pl.col("name").str.contains("at::native", literal=True).any()).item()
    return TraceInfo(
        path=path,
        format=FORMAT.name,
        framework="pytorch" if has_torch else None,
        host=host if isinstance(host, str) else None,
        devices=[_describe_gpu(number, each) for number, (handle, each) in enumerate(gpus) if handle in used],
    )


def _describe_gpu(number: int, agent: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"id": number, "name": str(agent.get("product_name") or agent.get("name") or "")}
    for old, new in (("cu_count", "numSms"), ("wave_front_size", "warpSize")):
        if isinstance(agent.get(old), int):
            found[new] = agent[old]
    return found


def _link_launches(rows: pl.DataFrame) -> pl.DataFrame:
    """From the call to what it started: the same correlation id in the same process."""
    wanted = rows.filter(pl.col("correlation") > 0)
    calls = wanted.filter(pl.col("category").is_in(["hip_api", "hsa_api"])).select(
        "process", "correlation", origin="row"
    )
    calls = calls.unique(["process", "correlation"], keep="first", maintain_order=True)
    device = wanted.filter(pl.col("agent").is_not_null()).select("process", "correlation", to="row")
    pairs = device.join(calls, on=["process", "correlation"], maintain_order="left")
    return pairs.select(pl.col("origin").alias("from"), "to", why=pl.lit("launch", dtype=LinkReason))


def _list_kernels(rows: pl.DataFrame) -> pl.DataFrame:
    found = rows.filter(pl.col("sort") == "kernel")
    if found.is_empty():
        return found.select(event="row")
    return found.select(
        event="row",
        grid=_extent("grid"),
        block=_extent("block"),
        registers=pl.col("registers").cast(pl.UInt32, strict=False),
        shared_bytes=pl.col("shared").cast(pl.UInt32, strict=False),
    )


def _extent(name: str) -> pl.Expr:
    parts = [pl.col(f"{name}_{axis}").cast(pl.UInt32, strict=False) for axis in "xyz"]
    is_whole = pl.all_horizontal(part.is_not_null() for part in parts)
    return pl.when(is_whole).then(pl.concat_arr(parts))
