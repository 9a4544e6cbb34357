"""Sets of spans, against sets of unit moments."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.native.both import builds

Span = tuple[int, int]

spans = st.lists(st.tuples(st.integers(-20, 20), st.integers(-20, 20)), max_size=25).map(sorted)


@pytest.fixture(scope="module", params=builds("spans.sets"))
def native(request: pytest.FixtureRequest) -> Any:
    """The module, compiled and interpreted."""
    return request.param


def columns(rows: Iterable[Span]) -> tuple[array[int], array[int]]:
    """Starts and ends."""
    listed = list(rows)
    return array("q", (start for start, _ in listed)), array("q", (end for _, end in listed))


def rows(found: tuple[array[int], array[int]]) -> list[Span]:
    """Starts and ends, side by side."""
    return list(zip(*found, strict=True))


def moments(found: Iterable[Span]) -> set[int]:
    """The whole numbers that the spans hold."""
    return {moment for start, end in found for moment in range(start, end)}


def runs(held: set[int]) -> list[Span]:
    """The shortest list of spans that holds exactly these moments."""
    starts = sorted(moment for moment in held if moment - 1 not in held)
    ends = sorted(moment + 1 for moment in held if moment + 1 not in held)
    return list(zip(starts, ends, strict=True))


def test_union_of_a_few(native: Any) -> None:
    assert rows(native.union(*columns([]))) == []
    assert rows(native.union(*columns([(0, 5), (2, 3), (5, 7), (9, 9), (10, 8), (11, 12)]))) == [
        (0, 7),
        (11, 12),
    ]


@given(given_spans=spans)
def test_union(native: Any, given_spans: list[Span]) -> None:
    found = native.union(*columns(given_spans))
    assert rows(found) == runs(moments(given_spans))
    assert native.total(*found) == len(moments(given_spans))


@given(one=spans, other=spans)
def test_intersect_and_subtract(native: Any, one: list[Span], other: list[Span]) -> None:
    sets = (*native.union(*columns(one)), *native.union(*columns(other)))
    assert rows(native.intersect(*sets)) == runs(moments(one) & moments(other))
    assert rows(native.subtract(*sets)) == runs(moments(one) - moments(other))


@given(one=spans, other=spans)
def test_sets_that_are_not_disjoint_do_no_harm(native: Any, one: list[Span], other: list[Span]) -> None:
    native.intersect(*columns(one), *columns(other))
    native.subtract(*columns(one), *columns(other))


def test_results_can_go_on(native: Any) -> None:
    """What comes out is a plain array that may grow or be read as a buffer."""
    starts, ends = native.union(*columns([(0, 5), (3, 9)]))
    starts.append(1)
    assert memoryview(ends).tolist() == [9]


def test_read_only_buffers(native: Any) -> None:
    fixed = (
        memoryview(bytes(columns([(1, 4)])[0])).cast("q"),
        memoryview(bytes(columns([(1, 4)])[1])).cast("q"),
    )
    assert native.total(*fixed) == 3


def test_unsorted_spans_are_refused(native: Any) -> None:
    with pytest.raises(ValueError, match="row 1 starts before row 0"):
        native.union(*columns([(5, 6), (1, 2)]))
    with pytest.raises(ValueError, match="differ in length"):
        native.total(array("q", [1]), array("q"))
