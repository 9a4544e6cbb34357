"""What planes and lines are, by their names: tracks with their devices, and the class of each line.

Asynchronous work overlaps on its line: it gets lanes, one track each, instead of nesting.
"""

from __future__ import annotations

import re

import polars as pl

from stepscope.formats.xplane.index import Index, Plane
from stepscope.lazy import dataclass
from stepscope.native.spans.lanes import lanes
from stepscope.trace.columns import buffer, series
from stepscope.trace.frames import take_largest
from stepscope.trace.schema import TABLES

# Classes of lines: what their events are.
HOST, STREAM, CORE_OPS, ASYNC_OPS, MODULES, STEPS, SCOPES, COUNTERS, OTHER = range(9)

_DEVICE = re.compile(r"^/device:([A-Za-z_]+)(?::([A-Za-z_]+))?:?(\d+)?")
_KINDS = {"gpu": "gpu", "tpu": "tpu", "cpu": "cpu", "xpu": "xpu", "mtia": "mtia", "hpu": "hpu"}
# What other runtimes add, such as `Megascale Trace`: what is sent between slices, which the cores wait for.
_CUSTOM = "/device:CUSTOM:"
_SPARSE_CORE = " SparseCore "
_STREAM = re.compile(r"^Stream #(\d+)")
# Lines that XProf derives have ids from here on.
_FIRST_DERIVED_ID = 0xDEADBEEF
_DERIVED_IDS = 400

_CORE_LINES = {"XLA Ops": CORE_OPS, "Sparse Core Ops": CORE_OPS, "Async XLA Ops": ASYNC_OPS}
_DERIVED_LINES = {
    "Steps": STEPS,
    "Sparse Core Steps": SCOPES,
    "XLA Modules": MODULES,
    "Sparse Core Modules": SCOPES,  # parts of the programs that the core beside it runs
    "XLA Ops": SCOPES,
    "Framework Ops": SCOPES,
    "TensorFlow Ops": SCOPES,
    "Framework Name Scope": SCOPES,
    "TensorFlow Name Scope": SCOPES,
    "XLA TraceMe": SCOPES,
    "Source code": SCOPES,
    "Launch Stats": OTHER,
    "Host Offload Ops": SCOPES,
    "Tensor Core Sync Flag": OTHER,
    "Sparse Core Syncs": OTHER,
    "_counters_": COUNTERS,
}


@dataclass(frozen=True)
class Device:
    """The device of a plane, or None for its kind where the plane is of the host."""

    kind: str | None = None
    ordinal: int | None = None


@dataclass(frozen=True)
class Line:
    """What a line is: its class, and the row of `tracks` that it becomes."""

    line_class: int
    what: str


def device_of(plane: str) -> Device:
    """The device that a plane is named after."""
    if plane.startswith("#Chip"):
        return Device("tpu")
    found = _DEVICE.match(plane)
    if found is None:
        return Device("other") if plane.startswith("/virtualdevice:") else Device()
    kind = _KINDS.get(found[1].lower(), "other")
    return Device(kind, int(found[3]) if found[3] and len(found[3]) < 9 else None)


def is_device(plane: str) -> bool:
    """Whether a plane is one of a device, and not of a part of one, or of what a runtime adds."""
    is_part = plane.startswith(("#Chip", _CUSTOM)) or _SPARSE_CORE in plane
    return device_of(plane).kind is not None and not is_part


def tracks(space: Index) -> tuple[pl.DataFrame, list[int]]:
    """One track per line, in the order of the file, and the class of each line."""
    lines = space.lines.to_dicts()
    streams = {row["plane"] for row in lines if _STREAM.match(row["name"])}
    rows, classes = [], []
    for number, row in enumerate(lines):
        plane = space.planes[row["plane"]]
        device = device_of(plane.name)
        line = classify(plane.name, device, row["name"], row["id"], row["plane"] in streams)
        stream = _STREAM.match(row["name"])
        classes.append(line.line_class)
        rows.append(
            {
                "id": number,
                "process": process_name(plane),
                "thread": row["display_name"] or row["name"] or f"thread {row['display_id'] or row['id']}",
                "stream": int(stream[1]) if stream and len(stream[1]) < 19 else None,
                "device": device.ordinal,
                "device_kind": device.kind or "cpu",
                "what": line.what,
                "pid": str(plane.stats["process_id"]) if "process_id" in plane.stats else None,
                "tid": str(row["display_id"] or row["id"]),
            }
        )
    return pl.DataFrame(rows, schema=TABLES["tracks"]), classes


def process_name(plane: Plane) -> str:
    """The plane's own name, with that of its device where it is known."""
    model = plane.stats.get("gpu_device_name") or plane.stats.get("device_type_string")
    return f"{plane.name} {model}" if isinstance(model, str) and model else plane.name


def classify(plane: str, device: Device, line: str, line_id: int, has_streams: bool) -> Line:
    """The class and use of a line. Work that the plane shows a second time is derived, never busy twice."""
    if plane.startswith(_CUSTOM):
        return Line(OTHER, "derived")
    if device.kind is None:
        return Line(OTHER, "derived") if plane in ("Host CPUs", "Syscalls") else Line(HOST, "host")
    if line == "_counters_":
        return Line(COUNTERS, "counter")
    if line in _CORE_LINES and not has_streams and device.kind != "gpu":
        return Line(_CORE_LINES[line], "device")
    if line in _DERIVED_LINES:
        return Line(_DERIVED_LINES[line], "derived")
    if device.kind == "tpu" or 0 <= line_id - _FIRST_DERIVED_ID < _DERIVED_IDS:
        return Line(OTHER, "derived")
    return Line(STREAM, "device")


def with_lanes(
    events: pl.DataFrame, tracks: pl.DataFrame, line_classes: list[int]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Events and tracks, where overlapping events of asynchronous lines are on tracks of their own."""
    for line, line_class in enumerate(line_classes):
        if line_class == ASYNC_OPS:
            events, tracks = _spread(events, tracks, line)
    return events, tracks


def _spread(events: pl.DataFrame, tracks: pl.DataFrame, line: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    rows = events.select(pl.int_range(pl.len(), dtype=pl.UInt32).alias("event"), "start_ns", "dur_ns")
    rows = rows.filter(events["track"] == line).sort("start_ns")
    end = rows["start_ns"] + rows["dur_ns"].clip(lower_bound=0)
    lane = series("lane", lanes(buffer(rows["start_ns"]), buffer(end)), pl.UInt32)
    count = take_largest(lane)
    if not count:
        return events, tracks
    first = len(tracks)
    moved = pl.select(pl.when(lane == 0).then(line).otherwise(lane + (first - 1)).cast(pl.UInt32)).to_series()
    copies = [_lane_track(tracks[line], first + i, i + 2) for i in range(count)]
    return events.with_columns(track=events["track"].scatter(rows["event"], moved)), pl.concat(
        [tracks, *copies]
    )


def _lane_track(track: pl.DataFrame, number: int, lane: int) -> pl.DataFrame:
    label = f" (lane {lane})"
    return track.with_columns(
        id=pl.lit(number, dtype=track["id"].dtype), thread=pl.col("thread") + label, tid=pl.col("tid") + label
    )
