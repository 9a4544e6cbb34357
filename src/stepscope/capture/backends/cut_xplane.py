"""Cuts an XPlane file to some intervals: TensorFlow's and JAX's collectors cannot pause, so the rest is taken out after.

Only what has a time is looked at (XSpace > XPlane > XLine > XEvent); every other byte is copied as it is. Times in the file
count from the start of the session, which the plane `Task Environment` has in nanoseconds since 1970. TensorFlow 2.15 and older do
not write that plane: there the moment counts at which the session was asked for, which is a little earlier.
"""

from __future__ import annotations

from pathlib import Path

from stepscope.capture.files.protobuf import fields, number_of, read_varint, text_of
from stepscope.capture.files.protobuf import head as head_of

_PLANES = 1
_PLANE_NAME, _PLANE_LINES, _PLANE_STAT_NAMES, _PLANE_STATS = 2, 3, 5, 6
_LINE_TIME, _LINE_EVENTS = 3, 4
_EVENT_OFFSET = 2
_ENVIRONMENT = b"Task Environment"
_START = b"profile_start_time"

Stretch = tuple[int, int]


# From the call that starts a session until the session takes its time.
_LATE_NS = 500_000


def cut(path: Path, stretches: list[Stretch], asked_ns: int | None = None) -> None:
    """Leave only events that begin in one of the intervals, given in nanoseconds since 1970 as is `asked_ns`."""
    data = path.read_bytes()
    start, early = session_start(data), 0
    if start is None:
        start, early = asked_ns, _LATE_NS
    if start is None:
        raise ValueError("the file does not record when its session began")
    wanted = [((low - start - early) * 1000, (high - start) * 1000) for low, high in stretches]
    out = bytearray()
    for number, head, body, end in fields(data, 0, len(data)):
        if number == _PLANES:
            plane = _plane(data, body, end, wanted)
            out += head_of(number, len(plane))
            out += plane
        else:
            out += data[head:end]
    path.write_bytes(out)


def _plane(data: bytes, at: int, end: int, wanted: list[Stretch]) -> bytearray:
    out = bytearray()
    for number, head, body, stop in fields(data, at, end):
        if number == _PLANE_LINES:
            line = _line(data, body, stop, wanted)
            out += head_of(number, len(line))
            out += line
        else:
            out += data[head:stop]
    return out


def _line(data: bytes, at: int, end: int, wanted: list[Stretch]) -> bytearray:
    """The line with its wanted events. Its time may come after them, so it is looked for first."""
    out = bytearray()
    base_ps = 1000 * number_of(data, at, end, _LINE_TIME)
    for number, head, body, stop in fields(data, at, end):
        if number == _LINE_EVENTS:
            offset = _offset(data, body, stop)
            begins = base_ps + (offset or 0)
            if offset is not None and not any(low <= begins < high for low, high in wanted):
                continue
        out += data[head:stop]
    return out


def _offset(data: bytes, at: int, end: int) -> int | None:
    """When the event begins after its line; None for one that is only a count."""
    counted = False
    for number, _, body, _ in fields(data, at, end):
        if number == _EVENT_OFFSET:
            return read_varint(data, body)[0]
        counted = counted or number == 5
    return None if counted else 0


def session_start(data: bytes) -> int | None:
    """When the times of the file begin, in nanoseconds since 1970; None where it does not say so."""
    for number, _, body, end in fields(data, 0, len(data)):
        if number == _PLANES and text_of(data, body, end, _PLANE_NAME) == _ENVIRONMENT:
            return _stat(data, body, end)
    return None


def _stat(data: bytes, at: int, end: int) -> int | None:
    names: dict[int, bytes] = {}
    values: dict[int, int] = {}
    for number, _, body, stop in fields(data, at, end):
        if number == _PLANE_STAT_NAMES:
            entry = {field: (inner, last) for field, _, inner, last in fields(data, body, stop)}
            if 2 in entry:
                names[number_of(data, body, stop, 1)] = text_of(data, *entry[2], 2)
        elif number == _PLANE_STATS:
            value = next(
                (read_varint(data, b)[0] for n, _, b, _ in fields(data, body, stop) if n in (3, 4)), 0
            )
            values[number_of(data, body, stop, 1)] = value
    return next((values[key] for key, name in names.items() if name == _START and key in values), None)
