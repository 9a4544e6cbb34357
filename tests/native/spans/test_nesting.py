"""Nesting, self time and the innermost event, against what follows from their definitions."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.native.both import builds

NONE = 0xFFFFFFFF
LAST = 2**63 - 1
Event = tuple[int, int, int]  # track, start, duration

events_on_tracks = st.lists(
    st.tuples(st.integers(0, 2), st.integers(-5, 15), st.integers(0, 12)), max_size=40
).map(lambda rows: sorted(rows, key=lambda row: (row[0], row[1], -row[2])))


@pytest.fixture(scope="module", params=builds("spans.nesting"))
def native(request: pytest.FixtureRequest) -> Any:
    """The module, compiled and interpreted."""
    return request.param


def u32(values: Iterable[int]) -> array[int]:
    """A uint32 column."""
    return array("I", values)


def i64(values: Iterable[int]) -> array[int]:
    """An int64 column."""
    return array("q", values)


def nested(
    native: Any, events: list[Event], flat: bytes = b"\0\0\0"
) -> tuple[list[int], list[int], int, int]:
    """(parents, depths, overlaps, deepest) of the events, with -1 for no parent."""
    parent, depth = u32([7]) * len(events), array("H", [7]) * len(events)
    tracks, starts, durations = (
        (list(column) for column in zip(*events, strict=True)) if events else ([], [], [])
    )
    overlaps, deepest = native.nest(u32(tracks), i64(starts), i64(durations), flat, parent, depth)
    return [-1 if up == NONE else up for up in parent], list(depth), overlaps, deepest


def holder(events: list[Event], row: int) -> int:
    """The latest earlier event of the track that has not ended at the start of this one and ends no earlier."""
    track, start, dur = events[row]
    for up in range(row - 1, -1, -1):
        if events[up][0] == track and start < events[up][1] + events[up][2] >= start + dur:
            return up
    return -1


def outlives(events: list[Event], row: int) -> bool:
    """Whether it starts inside an event that no other has outlived before, and ends after it."""
    track, start, dur = events[row]
    ends = [event[1] + event[2] if event[0] == track else -99 for event in events[:row]]
    return any(start < end < start + dur and max(ends[up:]) <= end for up, end in enumerate(ends))


@pytest.mark.parametrize(
    ("events", "parents", "overlaps"),
    [
        ([], [], 0),
        ([(0, 0, 10), (0, 2, 3), (0, 3, 1), (0, 6, 4)], [-1, 0, 1, 0], 0),
        ([(0, 0, 10), (1, 2, 3)], [-1, -1], 0),
        ([(0, 0, 10), (0, 0, 10), (0, 0, 10)], [-1, 0, 1], 0),
        ([(0, 0, 10), (0, 5, 10), (0, 6, 2), (0, 12, 1)], [-1, -1, 1, 1], 1),
        ([(0, 0, 30), (0, 1, 9), (0, 5, 10), (0, 6, 2)], [-1, 0, 0, 2], 1),
        ([(0, 0, 10), (0, 9, 0), (0, 10, 0)], [-1, 0, -1], 0),
        ([(0, 5, 0), (0, 5, 0)], [-1, -1], 0),
        ([(0, 0, LAST), (0, 5, LAST), (0, LAST, LAST)], [-1, 0, -1], 0),
    ],
    ids=[
        "none",
        "siblings",
        "tracks",
        "equal",
        "overlap",
        "overlap in a parent",
        "instants",
        "one instant",
        "no wrap",
    ],
)
def test_nest(native: Any, events: list[Event], parents: list[int], overlaps: int) -> None:
    found = nested(native, events)
    assert found[0] == parents
    assert found[2] == overlaps


@given(events=events_on_tracks)
def test_nest_follows_from_its_definition(native: Any, events: list[Event]) -> None:
    parents, depths, overlaps, deepest = nested(native, events)
    assert parents == [holder(events, row) for row in range(len(events))]
    assert depths == [0 if up < 0 else depths[up] + 1 for up in parents]
    assert deepest == max(depths, default=0)
    assert overlaps == sum(outlives(events, row) for row in range(len(events)))


def test_flat_tracks_do_not_nest(native: Any) -> None:
    parents, depths, overlaps, deepest = nested(
        native, [(0, 0, 9), (0, 1, 2), (1, 0, 9), (1, 1, 2), (1, 2, 9)], b"\0\1"
    )
    assert parents == [-1, 0, -1, -1, -1]
    assert depths == [0, 1, 0, 0, 0]
    assert (overlaps, deepest) == (0, 1)


@pytest.mark.parametrize("shape", ["deep", "overlapping", "overlapping in pairs"])
def test_nest_is_linear_on_hostile_input(native: Any, shape: str) -> None:
    n = 100_000
    spans = {
        "deep": [(i, 2 * (n - i)) for i in range(n)],
        "overlapping": [(i, n) for i in range(n)],
        "overlapping in pairs": [(i, n - i // 2) for i in range(n)],
    }[shape]
    _, depths, overlaps, deepest = nested(native, [(0, *span) for span in spans])
    if shape == "deep":
        assert (overlaps, deepest, depths[70_000]) == (0, 65535, 65535)
    else:
        assert overlaps == (n - 1 if shape == "overlapping" else n // 2)


@pytest.mark.parametrize("events", [[(0, 5, 1), (0, 4, 1)], [(1, 0, 1), (0, 5, 1)]], ids=["start", "track"])
def test_nest_refuses_unsorted_events(native: Any, events: list[Event]) -> None:
    with pytest.raises(ValueError, match="not sorted by track and start"):
        nested(native, events)


def test_columns_must_fit(native: Any) -> None:
    with pytest.raises(ValueError, match="differ in length"):
        native.self_times(u32([NONE]), i64([1, 2]), i64([0, 0]))
    with pytest.raises(IndexError):
        nested(native, [(5, 0, 1), (5, 0, 1)], b"\0")
    with pytest.raises(IndexError):
        native.self_times(u32([9]), i64([1]), i64([0]))


@given(events=events_on_tracks)
def test_self_times(native: Any, events: list[Event]) -> None:
    parents = nested(native, events)[0]
    durations = [dur for _, _, dur in events]
    rest = [
        dur - sum(d for d, up in zip(durations, parents, strict=True) if up == row)
        for row, dur in enumerate(durations)
    ]
    out = i64([-7]) * len(events)
    clamped = native.self_times(u32(up if up >= 0 else NONE for up in parents), i64(durations), out)
    assert list(out) == [max(0, value) for value in rest]
    assert clamped == sum(value < 0 for value in rest)


def test_self_time_does_not_wrap(native: Any) -> None:
    out = i64([0]) * 4
    assert native.self_times(u32([NONE, 0, 0, 0]), i64([LAST] * 4), out) == 1
    assert list(out) == [0, LAST, LAST, LAST]


def around(native: Any, events: list[Event], queries: list[tuple[int, int]]) -> list[int]:
    """The innermost events around (track, time), with -1 for none."""
    tracks = [track for track, _, _ in events]
    first = [sum(track < t for track in tracks) for t in range(4)]
    parent = u32(up if up >= 0 else NONE for up in nested(native, events)[0])
    starts, durations = i64(start for _, start, _ in events), i64(dur for _, _, dur in events)
    asked = u32(track for track, _ in queries), i64(time for _, time in queries)
    found = native.innermost(u32(first), starts, durations, parent, *asked)
    return [-1 if row == NONE else row for row in found]


def innermost(events: list[Event], track: int, time: int) -> int:
    """The last row that starts at the time, else the last that holds it."""
    here = [row for row, event in enumerate(events) if event[0] == track]
    starting = [row for row in here if events[row][1] == time]
    holding = [row for row in here if events[row][1] <= time < events[row][1] + events[row][2]]
    return max(starting or holding, default=-1)


def test_innermost_of_a_small_trace(native: Any) -> None:
    events = [(0, 0, 10), (0, 2, 3), (0, 5, 0), (2, 4, 4)]
    queries = [
        (0, -1),
        (0, 0),
        (0, 2),
        (0, 4),
        (0, 5),
        (0, 6),
        (0, 10),
        (1, 5),
        (2, 7),
        (2, 8),
        (3, 0),
        (NONE, 0),
    ]
    assert around(native, events, queries) == [-1, 0, 1, 1, 2, 0, -1, -1, 3, -1, -1, -1]


@given(
    events=events_on_tracks, queries=st.lists(st.tuples(st.integers(0, 4), st.integers(-7, 30)), max_size=30)
)
def test_innermost_follows_from_its_definition(
    native: Any, events: list[Event], queries: list[tuple[int, int]]
) -> None:
    assert around(native, events, queries) == [innermost(events, *query) for query in queries]


@pytest.mark.thorough
def test_innermost_in_deep_nesting(native: Any) -> None:
    """Every moment after the last start lies beyond 100,000 ends or fewer: walks must not take them one by one."""
    n = 100_000
    starts, durations = i64(range(n)), i64(2 * (n - row) for row in range(n))
    parent = u32([NONE, *range(n - 1)])
    times = i64((2 * n - 1 - query * 7919 % n) for query in range(20_000))
    found = native.innermost(u32([0, n]), starts, durations, parent, u32([0]) * len(times), times)
    assert list(found) == [2 * n - 1 - time for time in times]
