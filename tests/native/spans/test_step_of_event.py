"""The step of each event, by its start and by its launch."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.native.both import builds


@pytest.fixture(params=builds("spans.step_of_event"))
def steps(request: pytest.FixtureRequest) -> ModuleType:
    module: ModuleType = request.param
    return module


def listed(found: tuple[array[int], bytearray]) -> list[int | None]:
    numbers, bits = found
    return [number if bits[i >> 3] >> (i & 7) & 1 else None for i, number in enumerate(numbers)]


def by_time(steps: ModuleType, times: list[int], markers: list[tuple[int, int, int]]) -> list[int | None]:
    start, end, number = (array(code, [marker[i] for marker in markers]) for i, code in enumerate("qqi"))
    return listed(steps.by_time(array("q", times), start, end, number))


def test_markers_hold_their_start_and_not_their_end(steps: ModuleType) -> None:
    assert by_time(steps, [9, 10, 19, 20, 25, 30, 39, 40], [(10, 20, 5), (30, 40, -6)]) == [
        None, 5, 5, None, None, -6, -6, None,
    ]  # fmt: skip


def test_no_markers_and_no_events(steps: ModuleType) -> None:
    assert by_time(steps, [1, 2], []) == [None, None]
    assert by_time(steps, [], [(1, 2, 3)]) == []


def test_markers_that_are_not_sorted_are_refused(steps: ModuleType) -> None:
    with pytest.raises(ValueError, match="not sorted"):
        by_time(steps, [1], [(5, 6, 0), (1, 2, 1)])


@given(
    st.lists(st.integers(-5, 60), max_size=50),
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9), st.integers(-9, 9)), max_size=9),
)
def test_any_times_and_markers(times: list[int], spans: list[tuple[int, int, int]]) -> None:
    from stepscope.native.spans import step_of_event as compiled

    markers = [(start, start + length, number) for start, length, number in sorted(spans)]
    expected: list[int | None] = []
    for time in times:
        at = bisect_right([start for start, _, _ in markers], time) - 1
        expected.append(markers[at][2] if at >= 0 and time < markers[at][1] else None)
    assert by_time(compiled, times, markers) == expected


def test_launched_work_has_the_step_of_its_launch(steps: ModuleType) -> None:
    # Row 0 is in step 7, row 1 in step 8, rows 2 and 3 in none, row 4 in step 9.
    numbers, bits = array("i", [7, 8, 0, 0, 9]), bytes([0b10011])
    launches = [(0, 2), (2, 3), (2, 4), (1, 4), (0, 4)]
    begin, end = (array("I", [launch[i] for launch in launches]) for i in (0, 1))
    assert listed(steps.by_launch(begin, end, numbers, bits)) == [7, 8, 7, None, 8]


def test_a_launch_of_no_row_is_refused(steps: ModuleType) -> None:
    with pytest.raises(IndexError):
        steps.by_launch(array("I", [0]), array("I", [9]), array("i", [7]), bytes([1]))
