"""Adds sampled Python frames to an XPlane file: TensorFlow's collector has an option for them, and writes none.

They become events of the line of the thread that steps, in a file that stays an ordinary one: other tools show them as they show
everything else of that thread. Each is cut where an event of the collector reaches across one of its ends, so that all of them nest.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from stepscope.capture.backends.cut_xplane import session_start
from stepscope.capture.files.protobuf import fields, head, number_of, text_of, varint
from stepscope.capture.process.host_spans import SAMPLE_SECONDS, Span

_PLANES = 1
_PLANE_NAME, _PLANE_LINES, _PLANE_EVENT_NAMES = 2, 3, 4
_LINE_NAME, _LINE_TIME, _LINE_EVENTS = 2, 3, 4
_EVENT_NAME, _EVENT_OFFSET, _EVENT_LENGTH = 1, 2, 3
_HOST = b"/host:CPU"
_PYTHON_THREAD = b"python"
LARGEST_FILE = 64 << 20
_DOUBT_PS = round(SAMPLE_SECONDS / 2 * 1e12)
# As TensorFlow and JAX write frames, and as these are written.
_IS_FRAME = re.compile(rb"^\$|^(<[^<>\n]+>|[^()\n]+\.py)\(\d+\): ")


class _Event(NamedTuple):
    """An event as it is in the file, and when it was, in picoseconds after its line began."""

    start_ps: int
    length_ps: int
    raw: bytes


class _Line(NamedTuple):
    """A line of the host's plane: all but its events as it is, and they."""

    rest: bytes
    start_ps: int
    events: list[_Event]


def add_frames(path: Path, spans: list[Span], unix_minus_clock_ns: int, marker: str) -> None:
    """Write the spans of one thread into the line that has the events `marker`, or else the first one of a Python thread.

    A file that has frames of its own stays as it is. So does one that cannot be understood, does not say when its session began, or is so
    large that the job would wait for seconds: ValueError says which.
    """
    if not spans:
        return
    if path.stat().st_size > LARGEST_FILE:
        raise ValueError(f"the file is larger than {LARGEST_FILE >> 20} MiB")
    data = path.read_bytes()
    start = session_start(data)
    if start is None:
        raise ValueError("the file does not record when its session began")
    moved = [
        span._replace(
            start_ns=max(0, span.start_ns + unix_minus_clock_ns - start),
            end_ns=span.end_ns + unix_minus_clock_ns - start,
        )
        for span in spans
    ]
    out = bytearray()
    for number, begin, body, end in fields(data, 0, len(data)):
        plane = None
        if number == _PLANES and text_of(data, body, end, _PLANE_NAME) == _HOST:
            plane = _with_frames(data, body, end, moved, marker.encode())
        out += data[begin:end] if plane is None else head(number, len(plane)) + plane
    path.write_bytes(out)


def _with_frames(data: bytes, at: int, end: int, spans: list[Span], marker: bytes) -> bytes | None:
    """The plane with the frames; None where it has some, or no line for them."""
    names = dict(_event_names(data, at, end))
    if any(_IS_FRAME.search(name) for name in names.values()):
        return None
    place = _find_line(data, at, end, {key for key, name in names.items() if name == marker})
    if place is None:
        return None
    line = _read_line(data, *place)
    exact = [
        spans[0]._replace(start_ns=start, end_ns=start + length)
        for start, length in ((line.start_ps + each.start_ps, each.length_ps) for each in line.events)
    ]
    in_ps = [span._replace(start_ns=1000 * span.start_ns, end_ns=1000 * span.end_ns) for span in spans]
    pieces = [*_nest(_snap(in_ps, exact), exact)]
    first = 1 + max(names, default=0)
    keys = {name: first + place for place, name in enumerate(dict.fromkeys(span.name for span in pieces))}
    added = [_as_event(span, keys[span.name], line.start_ps) for span in pieces]
    # What contains others comes first, as in the lines of the collector.
    events = sorted((*added, *line.events), key=lambda each: (each.start_ps, -each.length_ps))
    content = line.rest + b"".join(head(_LINE_EVENTS, len(each.raw)) + each.raw for each in events)
    out = bytearray()
    for number, begin, body, stop in fields(data, at, end):
        is_line = number == _PLANE_LINES and (body, stop) == place
        out += head(number, len(content)) + content if is_line else data[begin:stop]
    for name, key in keys.items():
        out += _as_name(key, name.encode(errors="replace"))
    return bytes(out)


def _snap(spans: list[Span], exact: list[Span]) -> list[Span]:
    """Ends of samples, which may be off by half of their distance, moved to those of a long event that are as near.

    Else a function seems to end a little before or inside the call that it makes last.
    """
    edges = sorted(
        edge
        for each in exact
        if each.end_ns - each.start_ns >= _DOUBT_PS
        for edge in (each.start_ns, each.end_ns)
    )

    def nearest(moment: int) -> int:
        place = bisect_left(edges, moment)
        found = min(edges[max(0, place - 1) : place + 1], key=lambda edge: abs(edge - moment), default=moment)
        return found if abs(found - moment) <= _DOUBT_PS else moment

    moved = [span._replace(start_ns=nearest(span.start_ns), end_ns=nearest(span.end_ns)) for span in spans]
    return [span for span in moved if span.end_ns > span.start_ns]


def _nest(spans: list[Span], exact: list[Span]) -> Iterator[Span]:
    """Spans cut at the far ends of events that one of their own ends is in. What is wholly inside or around needs no cut.

    Cutting at every event would make thousands of pieces of each function that calls thousands of ops.
    """
    around = _open_at({end for span in spans for end in (span.start_ns, span.end_ns)}, exact)
    for span in spans:
        ends = {each.end_ns for each in around[span.start_ns] if each.end_ns < span.end_ns}
        starts = {each.start_ns for each in around[span.end_ns] if each.start_ns > span.start_ns}
        start = span.start_ns
        for moment in sorted((*ends, *starts, span.end_ns)):
            if moment > start:
                yield span._replace(start_ns=start, end_ns=moment)
                start = moment


def _open_at(moments: set[int], exact: list[Span]) -> dict[int, list[Span]]:
    """The events that each of the moments is inside of; events of a thread nest."""
    waiting = sorted(exact, key=lambda each: (-each.start_ns, each.end_ns))
    found: dict[int, list[Span]] = {}
    inside: list[Span] = []
    for moment in sorted(moments):
        while waiting and waiting[-1].start_ns < moment:
            each = waiting.pop()
            while inside and inside[-1].end_ns <= each.start_ns:
                inside.pop()
            inside.append(each)
        inside = [each for each in inside if each.end_ns > moment]
        found[moment] = list(inside)
    return found


def _event_names(data: bytes, at: int, end: int) -> Iterator[tuple[int, bytes]]:
    for number, _, body, stop in fields(data, at, end):
        if number == _PLANE_EVENT_NAMES:
            value = next(((b, s) for n, _, b, s in fields(data, body, stop) if n == 2), None)
            if value is not None:
                yield number_of(data, body, stop, 1), text_of(data, *value, 2)


def _find_line(data: bytes, at: int, end: int, markers: set[int]) -> tuple[int, int] | None:
    """Where the line is of which one event is a marker; else the first of a Python thread."""
    of_python = None
    for number, _, body, stop in fields(data, at, end):
        if number != _PLANE_LINES:
            continue
        for inner, _, first, last in fields(data, body, stop):
            if inner == _LINE_EVENTS and markers and number_of(data, first, last, _EVENT_NAME) in markers:
                return body, stop
        if of_python is None and text_of(data, body, stop, _LINE_NAME) == _PYTHON_THREAD:
            of_python = body, stop
    return of_python


def _read_line(data: bytes, at: int, end: int) -> _Line:
    rest, events = bytearray(), []
    for number, begin, body, stop in fields(data, at, end):
        if number == _LINE_EVENTS:
            start = number_of(data, body, stop, _EVENT_OFFSET)
            events.append(_Event(start, number_of(data, body, stop, _EVENT_LENGTH), data[body:stop]))
        else:
            rest += data[begin:stop]
    return _Line(bytes(rest), 1000 * number_of(data, at, end, _LINE_TIME), events)


def _as_event(span: Span, key: int, line_ps: int) -> _Event:
    start = max(0, span.start_ns - line_ps)
    length = max(0, span.end_ns - line_ps - start)
    numbers = ((_EVENT_NAME, key), (_EVENT_OFFSET, start), (_EVENT_LENGTH, length))
    return _Event(start, length, b"".join(varint(field << 3) + varint(value) for field, value in numbers))


def _as_name(key: int, name: bytes) -> bytes:
    """An entry of the plane's table of names."""
    value = varint(1 << 3) + varint(key) + head(2, len(name)) + name
    entry = varint(1 << 3) + varint(key) + head(2, len(value)) + value
    return head(_PLANE_EVENT_NAMES, len(entry)) + entry
