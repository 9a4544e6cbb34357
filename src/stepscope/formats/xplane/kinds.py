"""The kind of each event, from the class of its line, the class of its name, and flags that its stats raise."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import polars as pl

from stepscope.formats.xplane import tracks as planes
from stepscope.native.protobuf import xspace
from stepscope.trace.schema import KINDS

# Flags that stats raise, by the stat's name in lower case.
MARKER, OP, LAUNCH, COPY, MEMSET, KERNEL, MEMORY = 1, 2, 4, 8, 16, 32, 64
_FLAGS = {
    "step_num": MARKER,
    "tf_op": OP,
    "hlo_op": OP,
    "correlation_id": LAUNCH,
    "memcpy_details": COPY,
    "memset_details": MEMSET,
    "kernel_details": KERNEL,
    "memalloc_details": MEMORY,
    "memfree_details": MEMORY,
    "memoryresidency_details": MEMORY,
    "memory_residency_details": MEMORY,
}
_PARTS = {
    "_p": xspace.PRODUCER_ID,
    "_pt": xspace.PRODUCER_TYPE,
    "_c": xspace.CONSUMER_ID,
    "_ct": xspace.CONSUMER_TYPE,
}

# Classes of event names; the first pattern that fits decides.
(
    PLAIN,
    PYTHON,
    MEMORY_NAME,
    OVERHEAD,
    SYNC,
    RUNTIME,
    COPY_NAME,
    MEMSET_NAME,
    TF_OP,
    MARKER_NAME,
    ASYNC_COPY,
) = range(11)
_NAMES: tuple[tuple[int, str], ...] = (
    (PYTHON, r"^\$"),
    (MEMORY_NAME, r"^Memory(Alloc|Dealloc)|^MemFree|^MemAlloc|^MemoryResidency"),
    (OVERHEAD, r"^(<UNKNOWN>|BUFFER_FLUSH|DRIVER_COMPILER|INSTRUMENTATION|RESOURCE|CUPTI overhead.*)$"),
    (SYNC, r"^(cu|cuda|hip)[A-Z]\w*Synchronize\b|BlockHostUntilDone"),
    (RUNTIME, r"^(cu|cuda|hip)[A-Z]\w*( \(.*\))?$"),
    (COPY_NAME, r"(?i)^memcpy"),
    (MEMSET_NAME, r"(?i)^memset"),
    (MARKER_NAME, r"^TraceContext$"),
    (ASYNC_COPY, r"^(copy|slice|dynamic-slice|dynamic-update-slice|infeed|outfeed)([-.\d]|$)"),
)
# `scope/of/the/op:Type`, shown as `Type`: an op of TensorFlow.
_TF_OP = r"^[A-Za-z0-9.][\w.\/>@-]*:_?[A-Z]\w*$"
_NOT_TF_OP = r"^ThenExecuteCallback:|::"

_CODES = {kind: code for code, kind in enumerate(KINDS)}


def stat_tables(stat_names: list[str]) -> tuple[bytes, bytes]:
    """By stat name: its part in links, and its flags."""
    lower = [name.lower() for name in stat_names]
    return bytes(_PARTS.get(name, 0) for name in lower), bytes(_FLAGS.get(name, 0) for name in lower)


def name_classes(event_names: pl.DataFrame) -> bytes:
    """The class of each event name."""
    if event_names.is_empty():
        return b""
    judged: Any = pl.when(False).then(0)
    for name_class, pattern in _NAMES:
        judged = judged.when(pl.col("name").str.contains(pattern)).then(name_class)
    is_op = (
        (pl.col("raw") != pl.col("name"))
        & pl.col("raw").str.contains(_TF_OP)
        & ~pl.col("raw").str.contains(_NOT_TF_OP)
    )
    judged = judged.when(is_op).then(TF_OP).otherwise(PLAIN)
    return bytes(event_names.select(judged.cast(pl.UInt8)).to_series().to_list())


@cache
def kind_table() -> bytes:
    """The code of the kind at (line class * 16 + name class) * 256 + flags."""
    return b"".join(_kinds(line_class, name_class) for line_class in range(16) for name_class in range(16))


def _kinds(line_class: int, name_class: int) -> bytes:
    rule = _RULES.get(line_class, "span")
    if isinstance(rule, str) or name_class > ASYNC_COPY:
        kinds = [rule if isinstance(rule, str) else "span"] * xspace.AGGREGATE
    else:
        kinds = [rule(name_class, flags) for flags in range(xspace.AGGREGATE)]
    return bytes(map(_CODES.__getitem__, kinds)) + bytes([_CODES["instant"]]) * (256 - xspace.AGGREGATE)


def _host(name_class: int, flags: int) -> str:
    by_name = {PYTHON: "python", MEMORY_NAME: "memory", OVERHEAD: "overhead", SYNC: "sync"}
    if name_class in by_name:
        return by_name[name_class]
    if flags & LAUNCH or name_class == RUNTIME:
        return "runtime"
    if flags & MARKER or name_class == MARKER_NAME:
        return "annotation"
    return "op" if flags & OP or name_class == TF_OP else "span"


def _stream(name_class: int, flags: int) -> str:
    if flags & KERNEL:
        return "kernel"
    if flags & COPY:
        return "copy"
    if flags & MEMSET:
        return "memset"
    if flags & MEMORY:
        return "memory"
    return {COPY_NAME: "copy", MEMSET_NAME: "memset", MEMORY_NAME: "memory", SYNC: "sync"}.get(
        name_class, "kernel"
    )


def _async(name_class: int, _: int) -> str:
    return "copy" if name_class == ASYNC_COPY else "kernel"


_RULES: dict[int, str | Callable[[int, int], str]] = {
    planes.HOST: _host,
    planes.STREAM: _stream,
    planes.CORE_OPS: "kernel",
    planes.ASYNC_OPS: _async,
    planes.MODULES: "module",
    planes.STEPS: "annotation",
    planes.SCOPES: "scope",
    planes.COUNTERS: "counter",
}
