"""Rows and level of detail, against what follows from their definitions, for any window."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.native.view.rows import BLOCK
from tests.native.both import builds

LAST = 2**63 - 1
Event = tuple[int, int, int, int]  # track, depth, start, duration
Item = tuple[int, int, int, int]  # start, duration, slice, how many it stands for


@pytest.fixture(scope="module", params=builds("view.lod"))
def lod(request: pytest.FixtureRequest) -> Any:
    """The module, compiled and interpreted."""
    return request.param


@pytest.fixture(scope="module", params=builds("view.rows"))
def lod_rows(request: pytest.FixtureRequest) -> Any:
    """The module, compiled and interpreted."""
    return request.param


def i64(values: Iterable[int]) -> array[int]:
    """An int64 column."""
    return array("q", values)


def u32(values: Iterable[int]) -> array[int]:
    """A uint32 column."""
    return array("I", values)


events_on_tracks = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(-20, 60), st.integers(0, 25)), max_size=80
).map(lambda rows: sorted(rows, key=lambda row: (row[0], row[2], -row[3])))
# Slices of one row: mostly short ones close together, some that outlive many.
one_row = st.lists(
    st.tuples(st.integers(-300, 900), st.one_of(st.integers(0, 9), st.integers(0, 600))), max_size=400
).map(sorted)
windows = st.tuples(st.integers(-40, 120), st.integers(0, 6), st.sampled_from([1, 4, 16, 64]))


def arranged(lod_rows: Any, events: list[Event]) -> tuple[list[int], list[tuple[int, int, int, bool]]]:
    """The order of the events, and their rows."""
    columns = [list(column) for column in zip(*events, strict=True)] if events else [[], [], [], []]
    order, longest, rows = lod_rows.arrange(
        u32(columns[0]), array("H", columns[1]), i64(columns[2]), i64(columns[3])
    )
    assert len(longest) == -(-len(events) // BLOCK)
    return list(order), rows


@given(events_on_tracks)
def test_rows_hold_every_event_once_and_in_order(lod_rows: Any, events: list[Event]) -> None:
    order, rows = arranged(lod_rows, events)
    assert sorted(order) == list(range(len(events)))
    assert sum(row[2] for row in rows) == len(events)
    at = 0
    for track, depth, count, overlaps in rows:
        held = [events[number] for number in order[at : at + count]]
        assert {(event[0], event[1]) for event in held} == {(track, depth)}
        assert [event[2] for event in held] == sorted(event[2] for event in held)
        touching = any(one[2] + one[3] > two[2] for one, two in pairwise(held))
        assert not touching or overlaps
        at += count
    assert [row[:2] for row in rows] == sorted(row[:2] for row in rows)


def test_what_overlaps_gets_a_lane_until_there_are_none(lod_rows: Any) -> None:
    order, rows = arranged(lod_rows, [(0, 0, start, 1000) for start in range(lod_rows.LANES + 3)])
    assert [row[2] for row in rows] == [1] * (lod_rows.LANES - 1) + [4]
    assert [row[3] for row in rows] == [False] * (lod_rows.LANES - 1) + [True]
    assert order == list(range(lod_rows.LANES + 3))


def test_the_longest_of_each_block_is_known(lod_rows: Any) -> None:
    durs = [(number * 7919) % 101 for number in range(300)]
    events = [(0, 0, 1000 * number, dur) for number, dur in enumerate(durs)]
    columns = [list(column) for column in zip(*events, strict=True)]
    _, longest, rows = lod_rows.arrange(
        u32(columns[0]), array("H", columns[1]), i64(columns[2]), i64(columns[3])
    )
    assert len(rows) == 1
    assert longest == blocks(durs)


def test_columns_of_different_lengths_are_refused(lod: Any, lod_rows: Any) -> None:
    with pytest.raises(ValueError, match="differ in length"):
        lod_rows.arrange(u32([0]), array("H", []), i64([0]), i64([0]))
    with pytest.raises(ValueError, match="differ in length"):
        lod.Rows(i64([0]), i64([]), u32([0]), u32([0]), u32([0, 1]), b"\0")
    with pytest.raises(ValueError, match="differ in length"):
        lod.Rows(i64([0]), i64([0]), u32([0]), u32([]), u32([0, 1]), b"\0")


def naive(slices: list[tuple[int, int]], begin: int, bits: int, buckets: int) -> set[tuple[int, int]]:
    """(slice, how many it stands for) by the definition."""
    end = begin + (buckets << bits)
    found = {
        (number, 1)
        for number, (start, dur) in enumerate(slices)
        if dur >= 1 << bits and start < end and start + dur > begin
    }
    short: dict[int, list[int]] = defaultdict(list)
    for number, (start, dur) in enumerate(slices):
        if dur < 1 << bits and begin <= start < end:
            short[(start - begin) >> bits].append(number)
    return found | {(max(held, key=lambda each: slices[each][1]), len(held)) for held in short.values()}


def blocks(durs: list[int]) -> array[int]:
    """The first of the longest in each block."""
    numbers = [range(at, min(at + BLOCK, len(durs))) for at in range(0, len(durs), BLOCK)]
    return u32(max(block, key=durs.__getitem__) for block in numbers)


def items(
    lod: Any, slices: list[tuple[int, int]], begin: int, bits: int, buckets: int, overlaps: bool = True
) -> list[Item]:
    """What the window shows of one row."""
    rows = lod.Rows(
        i64(start for start, _ in slices),
        i64(dur for _, dur in slices),
        u32(range(len(slices))),
        blocks([dur for _, dur in slices]),
        u32([0, len(slices)]),
        bytes([overlaps]),
    )
    window = lod.Window(begin, bits, buckets)
    assert window.fill(rows, 0) == len(window.items()[0])
    return list(zip(*window.items(), strict=True))


@given(one_row, windows)
def test_a_window_shows_what_the_definition_says(
    lod: Any, slices: list[tuple[int, int]], at: tuple[int, int, int]
) -> None:
    begin, bits, buckets = at
    found = items(lod, slices, begin, bits, buckets)
    if len(found) == 4 * buckets:  # no room for more: nothing is lost from the count
        short = sum(
            1 for start, dur in slices if dur < 1 << bits and begin <= start < begin + (buckets << bits)
        )
        long = len(naive(slices, begin, bits, buckets) & {(number, 1) for number in range(len(slices))})
        assert sum(item[3] for item in found) >= max(short, long)
    else:
        assert {(number, count) for _, _, number, count in found} == naive(slices, begin, bits, buckets)
        assert len(found) == len({item[2] for item in found})


@given(one_row, windows)
def test_rows_without_overlaps_need_only_look_one_slice_back(
    lod: Any, slices: list[tuple[int, int]], at: tuple[int, int, int]
) -> None:
    begin, bits, buckets = at
    apart: list[tuple[int, int]] = []
    for start, dur in slices:
        if not apart or apart[-1][0] + apart[-1][1] <= start:
            apart.append((start, dur))
    found = items(lod, apart, begin, bits, buckets, overlaps=False)
    assert {(number, count) for _, _, number, count in found} == naive(apart, begin, bits, buckets)
    assert len(found) <= 2 * buckets + 1


@given(one_row, st.integers(-400, 1000))
def test_nothing_is_missing_at_full_zoom(lod: Any, slices: list[tuple[int, int]], begin: int) -> None:
    found = items(lod, slices, begin, 0, 256)
    shown = {number for _, _, number, _ in found}
    for number, (start, dur) in enumerate(slices):
        if dur and start < begin + 256 and start + dur > begin:
            assert number in shown
            assert (start - begin, dur, number, 1) in found


@given(one_row, windows)
def test_places_are_told_in_units(lod: Any, slices: list[tuple[int, int]], at: tuple[int, int, int]) -> None:
    begin, bits, buckets = at
    scaled = [(start << 8, dur << 8) for start, dur in slices]
    for start, dur, number, _ in items(lod, scaled, begin << 8, bits + 8, buckets):
        unit = 1 << bits
        assert start == ((scaled[number][0] - (begin << 8)) // unit)
        assert start + dur == (scaled[number][0] + scaled[number][1] - (begin << 8)) // unit


def test_absurd_times_neither_wrap_nor_fail(lod: Any) -> None:
    slices = [(-LAST, LAST), (-5, LAST), (0, LAST), (7, 1), (LAST - 3, LAST)]
    for begin in (-(2**60), 0, 2**60):
        for bits in (0, 20, 48):
            for start, dur, number, count in items(lod, slices, begin, bits, 1024):
                assert -(2**30) <= start <= 2**30
                assert 0 <= dur <= 2**31
                assert 0 <= number < 5
                assert 1 <= count <= 5


@pytest.mark.parametrize(("bits", "buckets"), [(-1, 4), (49, 4), (3, 0), (3, 5000)])
def test_windows_that_are_none_are_refused(lod: Any, bits: int, buckets: int) -> None:
    with pytest.raises(ValueError, match="no window"):
        lod.Window(0, bits, buckets)
    with pytest.raises(ValueError, match="no window"):
        lod.samples(i64([]), array("d"), 0, bits, buckets)


def test_whole_blocks_count_as_their_slices_do(lod: Any) -> None:
    slices = [(number, (number * 7919) % 5) for number in range(4096)]
    found = items(lod, slices, 0, 10, 4)
    assert {(number, count) for _, _, number, count in found} == naive(slices, 0, 10, 4)
    assert sum(count for *_, count in found) == 4096


def test_the_place_of_a_moment(lod: Any) -> None:
    rows = lod.Rows(i64([0, 5, 5, 9, 1]), i64([1] * 5), u32(range(5)), u32([0]), u32([0, 4, 5]), b"\0\0")
    assert [rows.place(0, at) for at in (-1, 0, 1, 5, 6, 10)] == [0, 0, 1, 1, 3, 4]
    assert [rows.place(1, at) for at in (0, 1, 2)] == [4, 4, 5]
    assert rows.size() == 2


@given(
    st.lists(st.tuples(st.integers(-50, 300), st.integers(-9, 9)), max_size=200).map(
        lambda rows: sorted(rows, key=lambda row: row[0])
    ),
    windows,
)
def test_counters_show_least_greatest_and_last(
    lod: Any, rows: list[tuple[int, int]], at: tuple[int, int, int]
) -> None:
    begin, bits, buckets = at
    end = begin + (buckets << bits)
    wanted: dict[int, list[int]] = {}
    for time, value in rows:
        if time < begin:
            wanted[-1] = [value]
        elif time < end:
            wanted.setdefault((time - begin) >> bits, []).append(value)
    found = lod.samples(i64(time for time, _ in rows), array("d", [value for _, value in rows]), *at)
    assert list(zip(*found, strict=True)) == [
        (bucket, min(values), max(values), values[-1]) for bucket, values in wanted.items()
    ]
