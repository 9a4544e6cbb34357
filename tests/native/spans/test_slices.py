"""Slices cut at windows, placed, merged and summed, in both builds, against a plain reading of them."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.native.both import builds

NONE = 0xFFFFFFFF
ODD = 0x9E3779B97F4A7C15


@pytest.fixture(params=builds("spans.slices"), scope="module")
def native(request: pytest.FixtureRequest) -> Any:
    return request.param


_edges = st.lists(st.integers(0, 30), max_size=8, unique=True).map(sorted)
_slices = st.lists(st.tuples(st.integers(-3, 30), st.integers(0, 12)), max_size=12)


def _windows(edges: list[int]) -> list[tuple[int, int]]:
    return list(zip(edges[::2], edges[1::2], strict=False))


def _columns(rows: Sequence[tuple[int, ...]], codes: str) -> list[array[int]]:
    columns = list(zip(*rows, strict=True)) or [()] * len(codes)
    return [array(code, column) for code, column in zip(codes, columns, strict=True)]


@given(times=st.lists(st.integers(-3, 33), max_size=20), edges=_edges)
def test_a_moment_is_in_the_window_that_holds_it(native: Any, times: list[int], edges: list[int]) -> None:
    windows = _windows(edges)
    expected = [
        next((row for row, (start, end) in enumerate(windows) if start <= time < end), NONE) for time in times
    ]
    assert list(native.place(array("q", times), *_columns(windows, "qq"))) == expected


@given(slices=_slices, edges=_edges)
def test_slices_are_cut_at_windows(native: Any, slices: list[tuple[int, int]], edges: list[int]) -> None:
    windows = _windows(edges)
    spans = [(start, start + length) for start, length in slices]
    found = list(zip(*native.cut(*_columns(spans, "qq"), *_columns(windows, "qq")), strict=True))
    expected = [
        (row, window, max(start, low), min(end, high))
        for row, (start, end) in enumerate(spans)
        for window, (low, high) in enumerate(windows)
        if max(start, low) < min(end, high)
    ]
    assert sorted(found) == expected


def test_slices_of_one_window_come_first(native: Any) -> None:
    spans, windows = [(0, 15), (2, 4), (11, 12)], [(0, 10), (10, 20)]
    row, window, start, end = native.cut(*_columns(spans, "qq"), *_columns(windows, "qq"))
    assert list(row) == [1, 2, 0, 0]
    assert list(window) == [0, 1, 0, 1]
    assert list(zip(start, end, strict=True)) == [(2, 4), (11, 12), (0, 10), (10, 15)]


_kinds = st.lists(st.tuples(*[st.integers(0, 1)] * 4), max_size=12)


@given(rows=_kinds, breaks=st.lists(st.booleans(), min_size=12, max_size=12))
def test_what_says_the_same_becomes_one(
    native: Any, rows: Sequence[tuple[int, ...]], breaks: list[bool]
) -> None:
    start = [10 * row + (1 if breaks[row] else 0) for row in range(len(rows))]
    end = [10 * (row + 1) for row in range(len(rows))]
    kind, gap, named_by, detail = _columns(rows, "BIII")
    thread = array("I", [0] * len(rows))
    first, last = native.runs(array("q", start), array("q", end), kind, gap, named_by, detail, thread)
    begins = [row for row in range(len(rows)) if row == 0 or breaks[row] or rows[row] != rows[row - 1]]
    assert list(first) == begins
    assert list(last) == [end[row - 1] for row in [*begins[1:], len(rows)]] if begins else not len(last)


@given(rows=st.lists(st.tuples(st.integers(5, 8), st.integers(0, 3), st.integers(0, 9)), max_size=20))
def test_lengths_are_summed_by_row_and_kind(native: Any, rows: Sequence[tuple[int, ...]]) -> None:
    row, kind, end = _columns(rows, "iBq")
    expected: dict[tuple[int, int], int] = {}
    for number, sort, length in rows:
        expected[number, sort] = expected.get((number, sort), 0) + length
    found = native.sum_cells(row, kind, array("q", bytes(8 * len(rows))), end, (5, 8), 4)
    assert [((one, other), ns) for one, other, ns in zip(*found, strict=True)] == list(expected.items())


def _alike(native: Any, rows: Sequence[tuple[int, ...]], names: list[int]) -> list[tuple[int, int]]:
    part, thread, named_by, detail, end = _columns(rows, "BIIIq")
    table = native.Alike(array("I", names), ODD)
    table.slices(part, thread, named_by, detail)
    first, ns = table.sums(array("q", bytes(8 * len(rows))), end)
    return list(zip(first, ns, strict=True))


def _expected(rows: Sequence[tuple[int, ...]], names: list[int]) -> list[tuple[int, int]]:
    by_key: dict[tuple[int, ...], list[int]] = {}
    for row, (part, thread, named_by, detail, ns) in enumerate(rows):
        named, more = (names[event] if event != NONE else NONE for event in (named_by, detail))
        entry = by_key.setdefault((part, thread, named, more), [row, 0])
        entry[1] += ns
    return [(first, ns) for first, ns in by_key.values()]


_event = st.sampled_from([0, 1, 2, NONE])
_rows = st.tuples(st.integers(0, 2), st.sampled_from([0, 7, NONE]), _event, _event, st.integers(0, 9))


@given(rows=st.lists(_rows, max_size=30))
def test_slices_of_the_same_names_are_summed(native: Any, rows: Sequence[tuple[int, ...]]) -> None:
    assert _alike(native, rows, [4, 4, 9]) == _expected(rows, [4, 4, 9])


def test_there_is_room_for_many_names(native: Any) -> None:
    names = list(range(3000))
    rows = [(0, 0, event, NONE, event) for event in names] * 2
    assert _alike(native, rows, names) == _expected(rows, names)
