"""The timeline of a thread, in both builds, against a plain reading of it moment by moment."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.native.both import builds

NONE = 0xFFFFFFFF


@pytest.fixture(params=builds("spans.segments"), scope="module")
def native(request: pytest.FixtureRequest) -> Any:
    return request.param


Event = tuple[int, int, int]  # track, start, duration


def _columns(events: list[Event]) -> tuple[array[int], array[int], array[int]]:
    ordered = sorted(events, key=lambda event: (event[0], event[1], -event[2]))
    track, start, dur = zip(*ordered, strict=True) if ordered else ((), (), ())
    return array("I", track), array("q", start), array("q", dur)


def test_the_innermost_event_owns_a_moment(native: Any) -> None:
    columns = _columns([(0, 0, 10), (0, 2, 3), (0, 7, 1), (1, 4, 2)])
    start, end, row = native.segments(*columns, bytes([1] * 4))
    found = list(zip(row, start, end, strict=True))
    assert found == [(0, 0, 2), (1, 2, 5), (0, 5, 7), (2, 7, 8), (0, 8, 10), (3, 4, 6)]


def test_events_that_are_not_wanted_own_nothing(native: Any) -> None:
    columns = _columns([(0, 0, 10), (0, 2, 3), (0, 7, 1), (1, 4, 2)])
    start, end, row = native.segments(*columns, bytes([1, 0, 1, 0]))
    assert list(zip(row, start, end, strict=True)) == [(0, 0, 7), (2, 7, 8), (0, 8, 10)]
    with pytest.raises(ValueError, match="length"):
        native.segments(*columns, bytes([1]))


_events = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(0, 12)), max_size=14)


@given(events=_events)
def test_segments_follow_one_another_and_cover_what_events_cover(native: Any, events: list[Event]) -> None:
    track, start, dur = _columns(events)
    begins, ends, rows = native.segments(track, start, dur, bytes([1] * len(dur)))
    covered = {(track[i], t) for i in range(len(start)) for t in range(start[i], start[i] + dur[i])}
    owned = [(track[r], t) for r, a, b in zip(rows, begins, ends, strict=True) for t in range(a, b)]
    assert len(owned) == len(set(owned))
    assert set(owned) == covered
    for row, a, b in zip(rows, begins, ends, strict=True):
        assert start[row] <= a < b <= start[row] + dur[row]


@given(events=_events, spans=_events)
def test_cut_covers_each_span_exactly(native: Any, events: list[Event], spans: list[Event]) -> None:
    track, start, dur = _columns(events)
    begins, ends, rows = native.segments(track, start, dur, bytes([1] * len(dur)))
    of_track = [track[row] for row in rows]
    first = array("I", [sum(t < number for t in of_track) for number in range(4)])
    span_track = array("I", [span[0] for span in spans])
    low = array("q", [span[1] for span in spans])
    high = array("q", [span[1] + span[2] for span in spans])
    span, a, b, owner, place = native.cut(span_track, low, high, first, begins, ends, rows)
    for number in range(len(spans)):
        mine = [i for i in range(len(span)) if span[i] == number]
        moments = [t for i in mine for t in range(a[i], b[i])]
        assert moments == list(range(low[number], high[number]))
    for i in range(len(span)):
        if owner[i] == NONE:
            inside = [s for s in range(len(rows)) if of_track[s] == span_track[span[i]]]
            assert all(ends[s] <= a[i] or begins[s] >= b[i] for s in inside)
        else:
            assert rows[place[i]] == owner[i]
            assert begins[place[i]] <= a[i] < b[i] <= ends[place[i]]


def test_the_next_event_of_a_track(native: Any) -> None:
    first, start = array("I", [0, 2, 2, 3]), array("q", [5, 9, 1])
    asked = [(0, 0), (0, 5), (0, 6), (0, 10), (1, 0), (2, 1), (7, 0)]
    tracks, times = array("I", [a for a, _ in asked]), array("q", [b for _, b in asked])
    assert list(native.next_start(first, start, tracks, times)) == [0, 0, 1, NONE, NONE, 2, NONE]
