"""Lanes for spans that overlap."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.native.both import builds


@pytest.fixture(scope="module", params=builds("spans.lanes"))
def native(request: pytest.FixtureRequest) -> Any:
    """The module, compiled and interpreted."""
    return request.param


def lanes(native: Any, rows: list[tuple[int, int]]) -> list[int]:
    """The lane of each (start, end)."""
    return list(native.lanes(array("q", (start for start, _ in rows)), array("q", (end for _, end in rows))))


def greedy(rows: list[tuple[int, int]]) -> list[int]:
    """The lowest lane whose last span has ended, or a new one."""
    free_at: list[int] = []
    found = []
    for start, end in rows:
        lane = next((lane for lane, time in enumerate(free_at) if time <= start), len(free_at))
        free_at[lane : lane + 1] = [end]
        found.append(lane)
    return found


def test_the_lowest_free_lane_is_used_again(native: Any) -> None:
    assert lanes(native, []) == []
    assert lanes(native, [(0, 10), (1, 5), (2, 3), (3, 9), (5, 6), (10, 11), (10, 11)]) == [
        0,
        1,
        2,
        2,
        1,
        0,
        1,
    ]


@given(rows=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 60)), max_size=40).map(sorted))
def test_lanes_are_greedy(native: Any, rows: list[tuple[int, int]]) -> None:
    assert lanes(native, rows) == greedy(rows)


def test_many_lanes(native: Any) -> None:
    n = 20_000
    assert lanes(native, [(row, n + row) for row in range(2 * n)]) == [row % n for row in range(2 * n)]


def test_unsorted_spans_are_refused(native: Any) -> None:
    with pytest.raises(ValueError, match="not sorted by start"):
        lanes(native, [(5, 6), (1, 2)])
