"""The JSON document: what it says of each process, its records as frames. Damaged records cost themselves only."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import msgspec
import polars as pl

from stepscope.errors import UnreadableFile

_HANDLE = pl.Struct({"handle": pl.Int64})
_EXTENT = pl.Struct({"x": pl.Int64, "y": pl.Int64, "z": pl.Int64})
_RECORD: dict[str, Any] = {
    "kind": pl.Int64,
    "operation": pl.Int64,
    "thread_id": pl.Int64,
    "correlation_id": pl.Struct({"internal": pl.Int64}),
    "start_timestamp": pl.Int64,
    "end_timestamp": pl.Int64,
    "dispatch_info": pl.Struct(
        {
            "agent_id": _HANDLE,
            "queue_id": _HANDLE,
            "kernel_id": pl.Int64,
            "group_segment_size": pl.Int64,
            "workgroup_size": _EXTENT,
            "grid_size": _EXTENT,
        }
    ),
    "stream_id": _HANDLE,
    "src_agent_id": _HANDLE,
    "dst_agent_id": _HANDLE,
    "bytes": pl.Int64,
}
_SYMBOL: dict[str, Any] = {
    "kernel_id": pl.Int64,
    "kernel_name": pl.String,
    "formatted_kernel_name": pl.String,
    "arch_vgpr_count": pl.Int64,
}
_AGAIN = "Record it again: rocprofv3 --runtime-trace --output-format json -- python train.py"


class Handle(msgspec.Struct):
    """How the runtime names an agent, a queue or a stream."""

    handle: int = -1


class Extent(msgspec.Struct):
    """Of a grid or a workgroup, in threads."""

    x: int = 1
    y: int = 1
    z: int = 1


class DispatchInfo(msgspec.Struct):
    """Of a kernel."""

    agent_id: Handle = msgspec.field(default_factory=Handle)
    queue_id: Handle = msgspec.field(default_factory=Handle)
    kernel_id: int = -1
    group_segment_size: int = 0
    workgroup_size: Extent = msgspec.field(default_factory=Extent)
    grid_size: Extent = msgspec.field(default_factory=Extent)


class Correlation(msgspec.Struct):
    """The call that caused the record."""

    internal: int = 0


class Record(msgspec.Struct):
    """What a record must look like to be read; the frames take its columns from the same text."""

    start_timestamp: int
    end_timestamp: int
    kind: int = 0
    operation: int = 0
    thread_id: int = 0
    bytes: int = 0
    correlation_id: Correlation = msgspec.field(default_factory=Correlation)
    dispatch_info: DispatchInfo = msgspec.field(default_factory=DispatchInfo)
    stream_id: Handle = msgspec.field(default_factory=Handle)
    src_agent_id: Handle = msgspec.field(default_factory=Handle)
    dst_agent_id: Handle = msgspec.field(default_factory=Handle)


class Symbol(msgspec.Struct):
    """The names and registers of a kernel."""

    kernel_id: int
    kernel_name: str = ""
    formatted_kernel_name: str = ""
    arch_vgpr_count: int = 0


class Tool(msgspec.Struct):
    """One process. Everything is looked at later, each part by itself."""

    metadata: msgspec.Raw = msgspec.Raw(b"{}")
    agents: msgspec.Raw = msgspec.Raw(b"[]")
    strings: msgspec.Raw = msgspec.Raw(b"{}")
    kernel_symbols: msgspec.Raw = msgspec.Raw(b"[]")
    buffer_records: dict[str, msgspec.Raw] = {}


class _Document(msgspec.Struct):
    tools: list[Tool] = msgspec.field(name="rocprofiler-sdk-tool", default_factory=list)


def decode(data: bytes | bytearray | memoryview, path: str) -> list[Tool]:
    """The processes of the file."""
    try:
        return msgspec.json.decode(data, type=_Document).tools
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise UnreadableFile(f"{path} is cut or damaged: {error}.", fix=_AGAIN) from None


def any_value(raw: msgspec.Raw, otherwise: Any) -> Any:
    """A part as plain values of the type that is expected; `otherwise` where it is something else."""
    try:
        found = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return otherwise
    return found if isinstance(found, type(otherwise)) else otherwise


def record_frame(raw: msgspec.Raw) -> tuple[pl.DataFrame, int]:
    """The records of one kind, and how many were damaged."""
    return _frame(raw, _RECORD, Record)


def symbol_frame(raw: msgspec.Raw) -> pl.DataFrame:
    """The kernels' names by number."""
    return _frame(raw, _SYMBOL, Symbol)[0]


def _frame(raw: msgspec.Raw, schema: dict[str, Any], shape: type) -> tuple[pl.DataFrame, int]:
    text = bytes(raw)
    if text.strip() in (b"", b"[]", b"null") or not text.lstrip().startswith(b"["):
        return pl.DataFrame(schema=schema), 0
    try:
        return pl.read_json(io.BytesIO(text), schema=schema), 0
    except pl.exceptions.PolarsError:
        pass
    rows = msgspec.json.decode(text, type=list[msgspec.Raw])
    good = [bytes(row) for row in rows if _is_good(row, shape)]
    if not good:
        return pl.DataFrame(schema=schema), len(rows)
    return pl.read_json(io.BytesIO(b"[" + b",".join(good) + b"]"), schema=schema), len(rows) - len(good)


def _is_good(row: msgspec.Raw, shape: type) -> bool:
    try:
        msgspec.json.decode(row, type=shape)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def read_operations(strings: dict[str, Any]) -> Iterator[tuple[int, int, str]]:
    """The names of operations: kind, operation, name."""
    kinds = strings.get("buffer_records")
    for number, kind in enumerate(kinds if isinstance(kinds, list) else []):
        names = kind.get("operations") if isinstance(kind, dict) else None
        for operation, name in enumerate(names if isinstance(names, list) else []):
            if isinstance(name, str):
                yield number, operation, name


def read_markers(strings: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """The texts of roctx ranges by correlation id."""
    found = strings.get("marker_api")
    for each in found if isinstance(found, list) else []:
        key, text = (each.get("key"), each.get("value")) if isinstance(each, dict) else (None, None)
        if isinstance(key, int) and abs(key) < 2**62 and isinstance(text, str):
            yield key, text
