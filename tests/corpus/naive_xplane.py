"""A slow, plain decoder of XSpace files to check ours against: it shares no code with the package."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Each field of a message: number, and an int or the bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = varint(data, at)
            yield number, value
        elif wire == 1:
            yield number, data[at : at + 8]
            at += 8
        elif wire == 2:
            size, at = varint(data, at)
            if at + size > len(data):
                raise ValueError("cut")
            yield number, data[at : at + size]
            at += size
        elif wire == 5:
            yield number, data[at : at + 4]
            at += 4
        else:
            raise ValueError(f"wire type {wire}")


def varint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned varint and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value & ((1 << 64) - 1), at


def signed(value: int) -> int:
    """Two's complement of 64 bits."""
    return value - (1 << 64) if value >= 1 << 63 else value


@dataclass
class Event:
    """One XEvent: picoseconds as stored."""

    name: str = ""
    offset_ps: int | None = None
    dur_ps: int = 0
    occurrences: int | None = None
    stats: list[tuple[str, Any]] = field(default_factory=list)


@dataclass
class Line:
    """One XLine."""

    id: int = 0
    name: str = ""
    display_name: str = ""
    timestamp_ns: int = 0
    events: list[Event] = field(default_factory=list)


@dataclass
class Plane:
    """One XPlane."""

    name: str = ""
    lines: list[Line] = field(default_factory=list)
    stats: dict[str, Any] = field(default_factory=dict)
    event_names: dict[int, str] = field(default_factory=dict)
    stat_names: dict[int, str] = field(default_factory=dict)
    metadata_stats: dict[int, dict[str, Any]] = field(default_factory=dict)


@dataclass
class Space:
    """One XSpace."""

    planes: list[Plane] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    hostnames: list[str] = field(default_factory=list)


def decode(data: bytes) -> Space:
    """The whole file."""
    space = Space()
    texts = {2: space.errors, 3: space.warnings, 4: space.hostnames}
    for number, value in fields(data):
        if number == 1:
            space.planes.append(_plane(value))
        elif number in texts:
            texts[number].append(value.decode())
    return space


def _plane(data: bytes) -> Plane:
    plane = Plane()
    parts = list(fields(data))
    metadata: dict[int, bytes] = {}
    for number, value in parts:
        if number == 2:
            plane.name = value.decode()
        elif number == 5:
            key, entry = _entry(value)
            plane.stat_names[key] = dict(fields(entry)).get(2, b"").decode(errors="replace")
        elif number == 4:
            key, metadata[key] = _entry(value)
    for key, entry in metadata.items():
        shown = dict(fields(entry))
        plane.event_names[key] = (shown.get(4) or shown.get(2) or b"").decode(errors="replace")
        plane.metadata_stats[key] = dict(_stat(plane, v) for n, v in fields(entry) if n == 5)
    plane.stats = dict(_stat(plane, v) for n, v in parts if n == 6)
    plane.lines = [_line(plane, v) for n, v in parts if n == 3]
    return plane


def _entry(data: bytes) -> tuple[int, bytes]:
    found = dict(fields(data))
    return signed(found.get(1, 0)), found.get(2, b"")


def _line(plane: Plane, data: bytes) -> Line:
    line = Line()
    for number, value in fields(data):
        if number == 1:
            line.id = signed(value)
        elif number == 2:
            line.name = value.decode()
        elif number == 11:
            line.display_name = value.decode()
        elif number == 3:
            line.timestamp_ns = signed(value)
        elif number == 4:
            line.events.append(_event(plane, value))
    return line


def _event(plane: Plane, data: bytes) -> Event:
    event = Event(name=plane.event_names.get(0, ""))
    for number, value in fields(data):
        if number == 1:
            event.name = plane.event_names.get(signed(value), "")
        elif number == 2:
            event.offset_ps = signed(value)
        elif number == 3:
            event.dur_ps = signed(value)
        elif number == 5:
            event.occurrences = signed(value)
        elif number == 4:
            event.stats.append(_stat(plane, value))
    return event


def _stat(plane: Plane, data: bytes) -> tuple[str, Any]:
    name, found = "", None
    for number, value in fields(data):
        if number == 1:
            name = plane.stat_names.get(signed(value), f"#{value}")
        elif number == 2:
            found = struct.unpack("<d", value)[0]
        elif number == 3:
            found = value
        elif number == 4:
            found = signed(value)
        elif number == 5:
            found = value.decode(errors="replace")
        elif number == 6:
            found = value
        elif number == 7:
            found = plane.stat_names.get(value, "")
    return name, found


def rounded_ns(ps: int) -> int:
    """Nearest nanosecond, halves upwards."""
    return (ps + 500) // 1000


def span_ns(line: Line, event: Event) -> tuple[int, int]:
    """Start and duration on the nanosecond grid, relative to the line's own clock."""
    start_ps = line.timestamp_ns * 1000 + (event.offset_ps or 0)
    start = rounded_ns(start_ps)
    return start, rounded_ns(start_ps + event.dur_ps) - start
