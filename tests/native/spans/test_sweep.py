"""The priority sweep, against asking each moment who owns it."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.native.both import builds

Row = tuple[int, int, int]  # start, end, priority

prioritised = st.lists(
    st.tuples(st.integers(-20, 20), st.integers(-20, 25), st.sampled_from([0, 1, 2, 30, 63])), max_size=25
).map(lambda rows: sorted(rows, key=lambda row: row[0]))


@pytest.fixture(scope="module", params=builds("spans.sweep"))
def native(request: pytest.FixtureRequest) -> Any:
    """The module, compiled and interpreted."""
    return request.param


def columns(rows: list[Row]) -> tuple[array[int], array[int], array[int]]:
    """Starts, ends and priorities."""
    return (
        array("q", (r[0] for r in rows)),
        array("q", (r[1] for r in rows)),
        array("B", (r[2] for r in rows)),
    )


def owner(rows: list[Row], moment: int) -> int | None:
    """Of those that hold the moment the one with the highest priority; the later to start, the later row."""
    open_rows = [(row[2], number) for number, row in enumerate(rows) if row[0] <= moment < row[1]]
    return max(open_rows)[1] if open_rows else None


def swept(native: Any, rows: list[Row], lo: int, hi: int) -> dict[int, int]:
    """The time by priority, zeros left out."""
    return {priority: ns for priority, ns in enumerate(native.sweep(*columns(rows), lo, hi)) if ns}


def test_a_step_in_one_screen(native: Any) -> None:
    rows = [(0, 100, 0), (10, 40, 2), (20, 30, 1), (35, 60, 3), (90, 120, 2)]
    assert swept(native, rows, 0, 110) == {0: 10 + 30, 2: 25 + 20, 3: 25}
    assert list(zip(*native.slices(*columns(rows), 0, 110), strict=True)) == [
        (0, 10, 0, 0),
        (10, 35, 2, 1),
        (35, 60, 3, 3),
        (60, 90, 0, 0),
        (90, 110, 2, 4),
    ]


def test_the_latest_to_start_wins_among_equals(native: Any) -> None:
    rows = [(0, 10, 1), (2, 4, 1), (3, 8, 1)]
    found = list(zip(*native.slices(*columns(rows), 0, 10), strict=True))
    assert found == [(0, 2, 1, 0), (2, 3, 1, 1), (3, 8, 1, 2), (8, 10, 1, 0)]


@given(rows=prioritised, lo=st.integers(-25, 25), length=st.integers(-3, 40))
def test_every_moment_has_one_owner(native: Any, rows: list[Row], lo: int, length: int) -> None:
    owners = [owner(rows, moment) for moment in range(lo, lo + length)]
    expected = [0] * 64
    for who in owners:
        if who is not None:
            expected[rows[who][2]] += 1
    assert list(native.sweep(*columns(rows), lo, lo + length)) == expected
    found: list[int | None] = [None] * max(0, length)
    before = (lo, None)
    for start, end, priority, row in zip(*native.slices(*columns(rows), lo, lo + length), strict=True):
        assert start < end
        assert (start, row) != before
        assert priority == rows[row][2]
        found[start - lo : end - lo] = [row] * (end - start)
        before = (end, row)
    assert found == owners


@pytest.mark.parametrize("shape", ["nested", "staircase"])
def test_a_hundred_thousand_open_at_once(native: Any, shape: str) -> None:
    n = 100_000
    rows = [(i, (2 * n - i) if shape == "nested" else (i + n), i % 64) for i in range(n)]
    assert sum(native.sweep(*columns(rows), 0, 2 * n)) == (2 * n if shape == "nested" else 2 * n - 1)


def test_bad_columns_are_refused(native: Any) -> None:
    with pytest.raises(ValueError, match="from 0 to 63"):
        native.sweep(*columns([(0, 1, 64)]), 0, 1)
    with pytest.raises(ValueError, match="not sorted by start"):
        native.slices(*columns([(5, 6, 1), (0, 1, 1)]), 0, 1)
