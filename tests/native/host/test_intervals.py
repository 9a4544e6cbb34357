"""Frames in long intervals between ops and calls, in both builds, against the rule written out nanosecond by nanosecond."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.native.both import builds

LONG = 5
Rows = list[tuple[int, int, int, bool]]


@pytest.fixture(params=builds("host.intervals"), scope="module")
def native(request: pytest.FixtureRequest) -> Any:
    return request.param


def run(native: Any, rows: Rows) -> list[int]:
    """Which rows (track, start, duration, is a frame) compute."""
    track, start, dur, frame = zip(*rows, strict=True) if rows else ((), (), (), ())
    return list(native.computing(array("I", track), array("q", start), array("q", dur), bytes(frame), LONG))


def test_a_frame_between_two_calls(native: Any) -> None:
    rows = [(0, 0, 2, False), (0, 2, 5, True), (0, 7, 2, False), (0, 9, 4, True), (0, 13, 1, False)]
    assert run(native, rows) == [0, 1, 0, 0, 0]


def test_silence_belongs_to_the_interval_and_another_track_does_not(native: Any) -> None:
    rows = [(0, 0, 1, False), (0, 3, 3, True), (1, 0, 4, True), (1, 4, 9, False)]
    assert run(native, rows) == [0, 1, 0, 0]


def test_an_outer_frame_is_what_most_of_its_own_time_is(native: Any) -> None:
    calls = [(0, at, 1, False) for at in (10, 14, 18, 22)]
    assert run(native, [(0, 0, 26, True), *calls]) == [0, 0, 0, 0, 0]
    assert run(native, [(0, 0, 26, True), *calls[:2]]) == [1, 0, 0]


def naive(rows: Rows) -> list[int]:
    """The owner of each moment, the intervals between rows that are no frames, and the balance of each row."""
    balance = [0] * len(rows)
    for track in {row[0] for row in rows}:
        ends = max(start + dur for each, start, dur, _ in rows if each == track)
        owners: list[int | None] = [None] * ends
        for number, (each, start, dur, _) in enumerate(rows):
            if each == track:
                owners[start : start + dur] = [number] * dur
        _judge(owners, rows, balance)
    return [int(ns > 0) for ns in balance]


def _judge(owners: list[int | None], rows: Rows, balance: list[int]) -> None:
    begin: int | None = None
    pieces: list[int] = []
    last = 0
    for moment, owner in enumerate([*owners, -1]):
        if owner is None:
            continue
        if owner == -1 or not rows[owner][3]:
            for each in pieces:
                balance[each] += 1 if last - (begin or 0) >= LONG else -1
            begin, pieces = moment + 1, []
        else:
            begin = moment if begin is None else begin
            pieces.append(owner)
            last = moment + 1


@st.composite
def nested(draw: st.DrawFn) -> Rows:
    """Rows of two tracks that nest, sorted as those of a trace."""
    rows: Rows = []
    for track in range(2):
        spans = [(0, 24)]
        for _ in range(draw(st.integers(0, 6))):
            low, high = spans[draw(st.integers(0, len(spans) - 1))]
            start = draw(st.integers(low, high - 1))
            end = draw(st.integers(start + 1, high))
            if all(end <= a or b <= start or (a <= start and end <= b) for a, b in spans):
                spans.append((start, end))
                rows.append((track, start, end - start, draw(st.booleans())))
    return sorted(rows, key=lambda row: (row[0], row[1], -row[2]))


@given(rows=nested())
def test_rule(native: Any, rows: Rows) -> None:
    assert run(native, rows) == naive(rows)
