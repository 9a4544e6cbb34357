"""Plants a slower kernel into a recorded XPlane profile. Needs TensorFlow, for the format's own classes."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path
from typing import Any


def opened(source: Path) -> Any:
    """The profile as an XSpace."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    data = source.read_bytes()
    return xplane_pb2.XSpace.FromString(gzip.decompress(data) if source.suffix == ".gz" else data)


def kernels_by_time(space: Any) -> list[tuple[str, int]]:
    """Names of the device's kernels with their time in ps, the longest first."""
    times: Counter[str] = Counter()
    for plane, line in _streams(space):
        for event in line.events:
            times[plane.event_metadata[event.metadata_id].name] += event.duration_ps
    return times.most_common()


def slower_kernel(space: Any, name: str, factor: float) -> None:
    """Every call of the kernel takes `factor` times as long; what follows on its stream begins no earlier than it ends."""
    for plane, line in _streams(space):
        free = 0
        for event in sorted(line.events, key=lambda each: each.offset_ps):
            if plane.event_metadata[event.metadata_id].name == name:
                event.duration_ps = int(event.duration_ps * factor)
            event.offset_ps = max(event.offset_ps, free)
            free = event.offset_ps + event.duration_ps


def _streams(space: Any) -> list[tuple[Any, Any]]:
    return [
        (plane, line)
        for plane in space.planes
        if plane.name.startswith("/device:GPU")
        for line in plane.lines
        if line.name.startswith("Stream")
    ]
