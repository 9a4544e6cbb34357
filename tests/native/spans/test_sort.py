"""Events by track, start and longer first, whatever order they came in."""

from __future__ import annotations

import random
from array import array
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.native.both import builds

Row = tuple[int, int, int]


@pytest.fixture(params=builds("spans.sort"))
def sort(request: pytest.FixtureRequest) -> ModuleType:
    module: ModuleType = request.param
    return module


def check(sort: ModuleType, rows: list[Row]) -> None:
    columns = [array(code, [row[i] for row in rows]) for i, code in enumerate("Iqq")]
    tracks = max((track for track, _, _ in rows), default=-1) + 1
    expected = sorted(range(len(rows)), key=lambda i: (rows[i][0], rows[i][1], -rows[i][2]))
    assert list(sort.by_time(*columns, tracks)) == expected


def shuffled(rows: list[Row]) -> list[Row]:
    random.Random(1).shuffle(rows)
    return rows


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 500])
def test_in_order_reversed_and_shuffled(sort: ModuleType, count: int) -> None:
    rows = [(0, i, 1) for i in range(count)]
    check(sort, rows)
    check(sort, rows[::-1])
    check(sort, shuffled(rows))


def test_stretches_that_interleave(sort: ModuleType) -> None:
    check(sort, [(track, 10 * i + track, 5) for track in (1, 0) for _ in range(3) for i in range(100)])


def test_children_written_before_their_parents(sort: ModuleType) -> None:
    check(sort, [(0, 100 * i + 10 * k, 90 - 10 * k) for i in range(50) for k in reversed(range(9))])


def test_equal_events_stay_as_they_were(sort: ModuleType) -> None:
    check(sort, [(0, 0, 0)] * 100)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-20, 20), st.integers(0, 3)), max_size=300))
def test_any_rows(rows: list[Row]) -> None:
    from stepscope.native.spans import sort as compiled

    check(compiled, rows)


def test_extreme_times(sort: ModuleType) -> None:
    check(
        sort,
        shuffled(
            [
                (i % 3, time, dur)
                for i, time in enumerate([-(2**63), 2**63 - 1, 0] * 9)
                for dur in (0, 2**63 - 1)
            ]
        ),
    )


def test_a_track_beyond_the_last_is_refused(sort: ModuleType) -> None:
    with pytest.raises(IndexError):
        sort.by_time(array("I", [2]), array("q", [0]), array("q", [0]), 2)
