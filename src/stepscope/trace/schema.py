"""The tables of a trace: their names, columns and types. Outside tools and saved caches rely on them.

Change anything here and raise SCHEMA_VERSION: caches written under another version are then loaded afresh.
"""

from __future__ import annotations

from functools import cache

import polars as pl

SCHEMA_VERSION = 4

# Names repeat by the thousand, so they are held once. One set of categories for all columns and all traces lets
# the traces of many ranks be put together without translating them.
STRINGS = pl.Categories("stepscope", "stepscope", pl.UInt32)
Text = pl.Categorical(STRINGS)

KINDS = (
    "op",  # a framework operation on the host
    "python",  # a Python function call
    "annotation",  # a span that a user or framework named, step markers included
    "runtime",  # a call into the device's runtime or driver
    "kernel",  # work on a device
    "copy",
    "memset",
    "sync",  # waiting for a device, a stream or an event
    "memory",  # an allocation or a release
    "counter",  # a sample of a counter
    "overhead",  # the profiler's own cost
    "module",  # a whole compiled program on a device
    "scope",  # a name scope laid over device work
    "instant",  # a moment without duration
    "span",  # anything else that has a duration
)
ROLES = ("step", "input", "forward", "backward", "optimizer", "collective", "compile", "io")
LINK_REASONS = ("launch", "forward-backward", "producer-consumer", "record-wait", "flow", "graph-node")
DEVICE_KINDS = ("cpu", "gpu", "tpu", "xpu", "mtia", "hpu", "other")
TRACK_USES = ("host", "device", "counter", "derived")
SEVERITIES = ("error", "warning", "info")

Kind = pl.Enum(KINDS)
Role = pl.Enum(ROLES)
LinkReason = pl.Enum(LINK_REASONS)
DeviceKind = pl.Enum(DEVICE_KINDS)
TrackUse = pl.Enum(TRACK_USES)
Severity = pl.Enum(SEVERITIES)
Extent = pl.Array(pl.UInt32, 3)

Columns = dict[str, "pl.DataType | type[pl.DataType]"]

TABLES: dict[str, Columns] = {
    # One row per span or instant, sorted by track, start and (longer first) duration; `id` is the row's number.
    "events": {
        "id": pl.UInt32,
        "track": pl.UInt32,
        "name": Text,
        "kind": Kind,
        "role": Role,
        "source_category": Text,
        "start_ns": pl.Int64,
        "dur_ns": pl.Int64,
        "parent": pl.UInt32,
        "depth": pl.UInt16,
        "step": pl.Int32,
    },
    "links": {"from": pl.UInt32, "to": pl.UInt32, "why": LinkReason},
    "tracks": {
        "id": pl.UInt32,
        "process": pl.String,
        "thread": pl.String,
        "stream": pl.Int64,
        "device": pl.Int32,
        "device_kind": DeviceKind,
        "what": TrackUse,
        "pid": pl.String,
        "tid": pl.String,
    },
    "ops": {
        "event": pl.UInt32,
        "shapes": Text,
        "dtypes": Text,
        "concrete_inputs": Text,
        "scope": Text,
        "python_parent": pl.UInt32,
        "sequence": pl.Int64,
        "external_id": pl.Int64,
        "placement": Text,
    },
    "kernels": {
        "event": pl.UInt32,
        "grid": Extent,
        "block": Extent,
        "registers": pl.UInt32,
        "shared_bytes": pl.UInt32,
        "occupancy": pl.Float32,
        "blocks_per_sm": pl.Float32,
        "warps_per_sm": pl.Float32,
        "graph_node": pl.UInt64,
        "op": pl.UInt32,
    },
    "copies": {"event": pl.UInt32, "bytes": pl.Int64, "direction": Text, "source": Text, "target": Text},
    "memory": {
        "event": pl.UInt32,
        "device": pl.Int32,
        "device_kind": DeviceKind,
        "allocator": Text,
        "stream": pl.Int64,
        "time_ns": pl.Int64,
        "bytes": pl.Int64,
        "requested": pl.Int64,
        "address": pl.UInt64,
        "total_allocated": pl.Int64,
        "total_reserved": pl.Int64,
        "action": Text,
        "stack": pl.UInt32,
        "kind": Text,
    },
    # The state of an allocator at one moment: every block of every segment.
    "blocks": {
        "device": pl.Int32,
        "stream": pl.Int64,
        "segment": pl.UInt64,
        "segment_bytes": pl.Int64,
        "segment_kind": Text,
        "address": pl.UInt64,
        "bytes": pl.Int64,
        "requested": pl.Int64,
        "state": Text,
        "stack": pl.UInt32,
        "time_ns": pl.Int64,
    },
    # The frames of the stacks that `memory` and `blocks` name, the innermost first.
    "frames": {
        "stack": pl.UInt32,
        "depth": pl.UInt16,
        "function": Text,
        "file": Text,
        "line": pl.Int32,
    },
    "collectives": {
        "event": pl.UInt32,
        "name": Text,
        "dtype": Text,
        "elements": pl.Int64,
        "elements_out": pl.Int64,
        "bytes": pl.Int64,
        "group": Text,
        "group_size": pl.Int32,
        "group_ranks": Text,
        "sequence": pl.Int64,
        "peer": pl.Int32,
    },
    "counters": {"track": pl.UInt32, "time_ns": pl.Int64, "value": pl.Float64},
    "modules": {"name": pl.String, "program_id": pl.Int64, "hlo": pl.Binary},
    "traces": {
        "path": pl.String,
        "format": pl.String,
        "framework": pl.String,
        "rank": pl.Int32,
        "world_size": pl.Int32,
        "host": pl.String,
        "base_unix_ns": pl.Int64,
        "clock_offset_ns": pl.Int64,
        "clock_drift": pl.Float64,
        "devices": pl.String,  # JSON: one object per device
        "versions": pl.String,  # JSON object
        "capture_options": pl.String,  # JSON object
        "capture": pl.String,  # JSON object
    },
    "problems": {
        "code": pl.String,
        "severity": Severity,
        "title": pl.String,
        "detail": pl.String,
        "fix": pl.String,
        "count": pl.Int64,
    },
}

# Tables whose `event` column, or the columns named here, hold event ids.
EVENT_REFERENCES: dict[str, tuple[str, ...]] = {
    "links": ("from", "to"),
    "ops": ("event", "python_parent"),
    "kernels": ("event", "op"),
    "copies": ("event",),
    "memory": ("event",),
    "collectives": ("event",),
}


def empty(table: str) -> pl.DataFrame:
    """The table without rows."""
    return _empty(table).clone()


@cache  # to make one takes a millisecond, and small profiles have mostly empty tables
def _empty(table: str) -> pl.DataFrame:
    return pl.DataFrame(schema=TABLES[table])


def conform(table: str, frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with exactly the table's columns and types: missing ones become null, others are an error."""
    columns = TABLES[table]
    given = frame.schema
    unknown = [name for name in given if name not in columns]
    if unknown:
        raise ValueError(f"table {table} has no column {unknown}")
    if frame.is_empty():
        return empty(table)  # without columns, literals alone would make one row of nulls
    if list(given.items()) == list(columns.items()):
        return frame
    return pl.DataFrame([_column(frame, name, dtype) for name, dtype in columns.items()])


def _column(frame: pl.DataFrame, name: str, dtype: pl.DataType | type[pl.DataType]) -> pl.Series:
    """One by one: a query that casts all of them costs more than a short table does."""
    if name not in frame.columns:
        nothing: pl.Series = pl.Series(name, [None], dtype=dtype).new_from_index(0, len(frame))
        return nothing
    found = frame[name]
    return found if found.dtype == dtype else found.cast(dtype)
