"""The name and kind of each event: arguments leave the name; line, name and stats decide the kind."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import polars as pl

from stepscope.formats.xplane import tpu, tracks
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
    COPY_KERNEL,
    FILL_KERNEL,
) = range(13)
_NAMES: tuple[tuple[int, str], ...] = (
    (
        PYTHON,
        r"^\$|^(<[^<>\n]+>|[^()\n]+\.py)\(\d+\): ",
    ),  # the profilers' own, and those that our capture samples
    (MEMORY_NAME, r"^Memory(Alloc|Dealloc)|^MemFree|^MemAlloc|^MemoryResidency"),
    (OVERHEAD, r"^(<UNKNOWN>|BUFFER_FLUSH|DRIVER_COMPILER|INSTRUMENTATION|RESOURCE|CUPTI overhead.*)$"),
    (SYNC, r"^(cu|cuda|hip)[A-Z]\w*Synchronize\b|BlockHostUntilDone"),
    (RUNTIME, r"^(cu|cuda|hip)[A-Z]\w*( \(.*\))?$"),
    (COPY_KERNEL, r"^__amd_rocclr_copy"),
    (FILL_KERNEL, r"^__amd_rocclr_fill"),
    (COPY_NAME, r"(?i)^memcpy"),
    (MEMSET_NAME, r"(?i)^memset"),
    (MARKER_NAME, r"^TraceContext$"),
    (ASYNC_COPY, r"^(copy|slice|dynamic-slice|dynamic-update-slice|infeed|outfeed)([-.\d]|$)"),
)
# `scope/of/the/op:Type`, shown as `Type`: an op of TensorFlow.
_TF_OP = r"^[A-Za-z0-9.][\w.\/>@-]*:_?[A-Z]\w*$"
_NOT_TF_OP = r"^ThenExecuteCallback:|::"

# Names that still carry their arguments, as TraceMe writes them: `name#key=value,key=value#`.
_PACKED = re.compile(r"^(.*?)#([^#=,]+=[^#]*)#$", re.DOTALL)
_WHOLE = re.compile(r"^-?\d{1,18}$")

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
    if isinstance(rule, str):
        kinds = [rule] * xspace.AGGREGATE
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
    """AMD's runtime copies and fills with kernels of its own, which are copies all the same."""
    if name_class in (COPY_KERNEL, FILL_KERNEL):
        return "copy" if name_class == COPY_KERNEL else "memset"
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


def _core(name_class: int, _: int) -> str:
    """What waits for a copy is a copy as far as the core is concerned: nothing is computed."""
    return "copy" if name_class == tpu.TRANSFER else "kernel"


def _async(name_class: int, _: int) -> str:
    return "copy" if name_class in (ASYNC_COPY, tpu.TRANSFER) else "kernel"


_RULES: dict[int, str | Callable[[int, int], str]] = {
    tracks.HOST: _host,
    tracks.STREAM: _stream,
    tracks.CORE_OPS: _core,
    tracks.ASYNC_OPS: _async,
    tracks.MODULES: "module",
    tracks.STEPS: "annotation",
    tracks.SCOPES: "scope",
    tracks.COUNTERS: "counter",
}


def unpack_names(event_names: pl.DataFrame) -> tuple[pl.DataFrame, list[tuple[int, str, Any]]]:
    """The names without arguments, and the arguments as (row of the name, key, value)."""
    packed = event_names["name"].str.contains(r"#.*=.*#$")
    if not packed.any():
        return event_names, []
    names = event_names["name"].to_list()
    found: list[tuple[int, str, Any]] = []
    for row in packed.arg_true():
        match = _PACKED.match(names[row])
        if match:
            names[row] = match[1]
            found += [(row, key, value) for key, value in _arguments(match[2])]
    return event_names.with_columns(name=pl.Series(names, dtype=pl.String)), found


def _arguments(text: str) -> list[tuple[str, Any]]:
    found = []
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if equals:
            found.append((key.strip(), int(value) if _WHOLE.match(value) else value))
    return found
