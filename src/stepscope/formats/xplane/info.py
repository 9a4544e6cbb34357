"""What an XSpace says of the run as a whole: framework, versions, devices, options, programs."""

from __future__ import annotations

from typing import Any

from stepscope.formats.protobuf import fields, signed, text
from stepscope.formats.xplane.index import Index, Plane
from stepscope.formats.xplane.tracks import device_of, is_device
from stepscope.trace.problems import Problems
from stepscope.trace.trace import TraceInfo

METADATA = "/host:metadata"
ENVIRONMENT = "Task Environment"
# Nanoseconds since the epoch, and not since the session began: 1973 and later.
_FIRST_ABSOLUTE_NS = 10**17
_FARTHEST_NS = 1 << 62

_OPTIONS = {
    1: "include_dataset_ops",
    2: "host_tracer_level",
    3: "device_tracer_level",
    4: "python_tracer_level",
    5: "version",
    6: "device_type",
    7: "enable_hlo_proto",
    8: "start_timestamp_ns",
    9: "duration_ms",
    10: "repository_path",
    13: "raise_error_on_start_failure",
    14: "session_id",
}
_FRAMEWORKS = (
    ("torch_xla", r"(?i)torch_xla|XLAGraphExecutor|SyncTensorsGraph|^PyTorchXLA"),
    ("jax", r"^PjitFunction|^pjit|jax/|^\$(api|pjit|core|profiler)\.py:\d+ |^jit_"),
    (
        "tensorflow",
        r"^TFE_|^EagerExecute|^ExecutorState::Process|^FunctionRun|^SessionRun|^IteratorGetNext|^Iterator::",
    ),
)


def info(space: Index, path: str) -> TraceInfo:
    """The trace as a whole; line times are read relative to `base_unix_ns`, see `line_times`."""
    return TraceInfo(
        path=path,
        format="xplane",
        framework=_framework(space),
        host=space.hostnames[0] if space.hostnames else None,
        base_unix_ns=_base(space),
        devices=[_device(plane) for plane in space.planes if is_device(plane.name)],
        versions=_versions(space),
        capture_options=_options(space),
    )


def line_times(space: Index) -> list[int]:
    """The start of each line in nanoseconds since the trace's base."""
    times = [min(max(time, -_FARTHEST_NS), _FARTHEST_NS) for time in space.lines["time"]]
    base = _base(space)
    return [time - base for time in times] if _is_absolute(space) else times


def _is_absolute(space: Index) -> bool:
    return any(time >= _FIRST_ABSOLUTE_NS for time in space.lines["time"])


def _base(space: Index) -> int:
    """When time zero was: the first line where lines have the time of day, else the start of the session."""
    if _is_absolute(space):
        return min(_FARTHEST_NS, *(int(time) for time in space.lines["time"] if time >= _FIRST_ABSOLUTE_NS))
    started = _stat(space, ENVIRONMENT, "profile_start_time")
    return started if isinstance(started, int) and 0 <= started < _FARTHEST_NS else 0


def _stat(space: Index, plane: str, name: str) -> Any:
    return next((p.stats[name] for p in space.planes if p.name == plane and name in p.stats), None)


def _framework(space: Index) -> str | None:
    names = space.event_names["name"]
    evidence = {name: int(names.str.contains(pattern).sum()) for name, pattern in _FRAMEWORKS}
    if _stat(space, METADATA, "jax_version") is not None:
        evidence["jax"] += len(names)
    best = max(evidence, key=lambda name: evidence[name])
    return best if evidence[best] else None


def _device(plane: Plane) -> dict[str, Any]:
    device = device_of(plane.name)
    found: dict[str, Any] = {"plane": plane.name, "kind": device.kind, "id": device.ordinal}
    model = plane.stats.get("gpu_device_name") or plane.stats.get("device_type_string")
    if model:
        found["name"] = model
    shown = (int, float, str)
    return found | {
        name: value
        for name, value in plane.stats.items()
        if isinstance(value, shown) and name != "process_id"
    }


def _versions(space: Index) -> dict[str, Any]:
    stats: dict[str, Any] = {}
    for plane in space.planes:
        if not device_of(plane.name).kind:
            stats |= {name: value for name, value in plane.stats.items() if name.endswith("_version")}
    return {
        name.removesuffix("_version"): value for name, value in stats.items() if not isinstance(value, bytes)
    }


def _options(space: Index) -> dict[str, Any]:
    """The options of the recording: the fields of ProfileOptions that are plain values."""
    packed = _stat(space, ENVIRONMENT, "profile_options")
    if not isinstance(packed, bytes):
        return {}
    found: dict[str, Any] = {}
    for number, value in fields(memoryview(packed), Problems()):
        if number in _OPTIONS:
            found[_OPTIONS[number]] = signed(value) if isinstance(value, int) else text(value)
    started, stopped = (_stat(space, ENVIRONMENT, f"profile_{end}_time") for end in ("start", "stop"))
    if isinstance(started, int) and isinstance(stopped, int) and stopped >= started:
        found["duration_ns"] = stopped - started
    return found
