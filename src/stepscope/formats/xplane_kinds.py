"""The kind of each event, from the class of its line, the class of its name, and flags that its stats raise."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from stepscope.formats import xplane_planes as planes
from stepscope.native import xspace
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
    "correlation_id": xspace.CORRELATION_ID,
    "device_id": xspace.DEVICE_ID,
}

# Classes of event names; the first pattern that fits decides.
PLAIN, PYTHON, MEMORY_NAME, OVERHEAD, SYNC, RUNTIME, COPY_NAME, MEMSET_NAME, TF_OP, MARKER_NAME, ASYNC_COPY = range(11)
_NAMES: tuple[tuple[int, str], ...] = (
    (PYTHON, r"^\$"),
    (MEMORY_NAME, r"^Memory(Alloc|Dealloc)|^MemFree|^MemAlloc|^MemoryResidency"),
    (OVERHEAD, r"^(<UNKNOWN>|BUFFER_FLUSH|DRIVER_COMPILER|INSTRUMENTATION|RESOURCE|CUPTI overhead.*)$"),
    (SYNC, r"^(cu|cuda|hip)[A-Z]\w*Synchronize\b|BlockHostUntilDone|^(cu|hip)StreamWaitEvent\b|^(cu|cuda|hip)EventQuery\b"),
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
    judged = pl.when(False).then(0)
    for name_class, pattern in _NAMES:
        judged = judged.when(pl.col("name").str.contains(pattern)).then(name_class)
    is_op = (pl.col("raw") != pl.col("name")) & pl.col("raw").str.contains(_TF_OP) & ~pl.col("raw").str.contains(_NOT_TF_OP)
    judged = judged.when(is_op).then(TF_OP).otherwise(PLAIN)
    return bytes(event_names.select(judged.cast(pl.UInt8)).to_series().to_list())


def kind_table() -> bytes:
    """The code of the kind at (line class * 16 + name class) * 256 + flags."""
    table = bytearray(16 * 16 * 256)
    for line_class in range(16):
        rule = _RULES.get(line_class, _other)
        for name_class in range(16):
            kinds = [_CODES[rule(name_class, flags)] for flags in range(128)]
            kinds += [_CODES["instant"]] * 128
            at = (line_class * 16 + name_class) * 256
            table[at : at + 256] = bytes(kinds)
    return bytes(table)


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
    return {COPY_NAME: "copy", MEMSET_NAME: "memset", MEMORY_NAME: "memory", SYNC: "sync"}.get(name_class, "kernel")


def _async(name_class: int, _: int) -> str:
    return "copy" if name_class == ASYNC_COPY else "kernel"


def _always(kind: str) -> Callable[[int, int], str]:
    return lambda name_class, flags: kind


_other = _always("span")
_RULES: dict[int, Callable[[int, int], str]] = {
    planes.HOST: _host,
    planes.STREAM: _stream,
    planes.CORE_OPS: _always("kernel"),
    planes.ASYNC_OPS: _async,
    planes.MODULES: _always("module"),
    planes.STEPS: _always("annotation"),
    planes.SCOPES: _always("scope"),
    planes.COUNTERS: _always("counter"),
}
