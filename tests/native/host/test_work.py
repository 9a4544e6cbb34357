"""What the host worked on before each launch, in both builds, against a plain reading of it moment by moment."""

from __future__ import annotations

from array import array
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.native.both import builds

NONE = 0xFFFFFFFF
UNKNOWN = 9
MAIN = 0
TRACKS = 2
END = 40


class Event(NamedTuple):
    track: int
    start: int
    end: int
    cause: int
    name: int
    flags: int


@pytest.fixture(params=builds("host.work"), scope="module")
def module(request: pytest.FixtureRequest) -> Any:
    return request.param


def pieces(
    module: Any, spans: list[tuple[int, int, int]], events: list[Event], quiet: list[tuple[int, int]]
) -> list[tuple[int, ...]]:
    """The pieces of spans (track, start, end) with one item each; every event is one segment, in order."""
    work = module.HostWork(MAIN, MAIN, UNKNOWN, 3)
    work.spans(
        array("I", range(len(spans))),
        array("I", [track for track, _, _ in spans]),
        array("q", [start for _, start, _ in spans]),
        array("q", [end for _, _, end in spans]),
    )
    first = [sum(event.track < track for event in events) for track in range(TRACKS + 1)]
    work.segments(
        array("I", first),
        array("q", [event.start for event in events]),
        array("q", [event.end for event in events]),
        array("I", range(len(events))),
    )
    work.events(
        array("B", [event.cause for event in events]),
        array("I", [event.name for event in events]),
        array("B", [event.flags for event in events]),
    )
    work.quiet(array("q", [start for start, _ in quiet]), array("q", [end for _, end in quiet]))
    return list(zip(*work.pieces(), strict=True))


def at(track: int, moment: int, events: list[Event]) -> int:
    found = (
        number
        for number, event in enumerate(events)
        if event.track == track and event.start <= moment < event.end
    )
    return next(found, NONE)


def plainly(
    spans: list[tuple[int, int, int]], events: list[Event], quiet: list[tuple[int, int]]
) -> list[tuple[int, int, int, int]]:
    """item, cause, name and ns of the moments that were work, in order; like ones in a row as one."""
    rows: list[tuple[int, int, int, int]] = []
    for item, (track, start, end) in enumerate(spans):
        moments = []
        for moment in range(start, end):
            own = at(track, moment, events)
            on_main = own == NONE
            event = at(MAIN, moment, events) if on_main else own
            moments.append((event, on_main or track == MAIN))
        time = start
        for (event, on_main), run in groupby(moments):
            ns = len(list(run))
            waits = event != NONE and events[event].flags & 1
            silent = on_main and any(low <= time and time + ns <= high for low, high in quiet)
            time += ns
            if waits or silent:
                continue
            cause, name = (UNKNOWN, NONE) if event == NONE else (events[event].cause, events[event].name)
            ns = min(ns, 3) if event != NONE and events[event].flags & 2 else ns
            if rows and rows[-1][:3] == (item, cause, name):
                ns += rows.pop()[3]
            rows.append((item, cause, name, ns))
    return rows


@st.composite
def threads(draw: st.DrawFn) -> list[Event]:
    events = []
    for track in range(TRACKS):
        edges = sorted(draw(st.sets(st.integers(0, END), max_size=10)))
        for start, end in pairwise(edges):
            if draw(st.booleans()):
                cause, name = draw(st.integers(0, 2)), draw(st.integers(0, 2))
                events.append(Event(track, start, end, cause, name, draw(st.sampled_from([0, 0, 0, 1, 2]))))
    return events


@st.composite
def stretches(draw: st.DrawFn) -> list[tuple[int, int]]:
    edges = sorted(draw(st.sets(st.integers(0, END), max_size=8)))
    return [pair for pair in pairwise(edges) if draw(st.booleans())]


@given(data=st.data())
def test_like_moment_by_moment(module: Any, data: st.DataObject) -> None:
    events = data.draw(threads())
    spans = [(data.draw(st.integers(0, TRACKS - 1)), low, high) for low, high in data.draw(stretches())]
    quiet = data.draw(stretches())
    found = pieces(module, spans, events, quiet)
    assert [(item, cause, name, ns) for item, cause, name, _, ns in found] == plainly(spans, events, quiet)


def test_the_first_event_stands_for_the_others(module: Any) -> None:
    events = [Event(0, 0, 4, 1, 7, 0), Event(0, 4, 9, 1, 7, 0)]
    assert pieces(module, [(0, 0, 9)], events, []) == [(0, 1, 7, 0, 9)]


def test_an_unknown_track_asks_the_main_one(module: Any) -> None:
    assert pieces(module, [(5, 0, 4)], [Event(0, 1, 4, 1, 7, 0)], []) == [
        (0, UNKNOWN, NONE, NONE, 1),
        (0, 1, 7, 0, 3),
    ]


def test_an_event_that_is_none_is_refused(module: Any) -> None:
    work = module.HostWork(MAIN, MAIN, UNKNOWN, 3)
    work.spans(array("I", [0]), array("I", [0]), array("q", [0]), array("q", [5]))
    work.segments(array("I", [0, 1]), array("q", [0]), array("q", [5]), array("I", [99]))
    work.events(array("B"), array("I"), array("B"))
    work.quiet(array("q"), array("q"))
    with pytest.raises(IndexError):
        work.pieces()
