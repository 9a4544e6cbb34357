"""Consumers and their producers."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.native import links
from tests.native.both import builds

Row = tuple[int, int, int]  # start, kind, id


@pytest.fixture(scope="module", params=builds("links"))
def native(request: pytest.FixtureRequest) -> Any:
    """The module, compiled and interpreted."""
    return request.param


def linked(
    native: Any, producers: list[Row], consumers: list[Row], early: bool = False
) -> list[tuple[int, int]]:
    """(producer, consumer) by number; consumers count on after the producers."""
    start = array("q", [row[0] for row in producers + consumers])
    sides = []
    for rows, first in ((producers, 0), (consumers, len(producers))):
        numbers = array("I", range(first, first + len(rows)))
        sides.append([numbers, array("I", [row[1] for row in rows]), array("q", [row[2] for row in rows])])
    begin, end = native.link(sides[0], sides[1], start, early, 0x9E3779B97F4A7C15)
    return list(zip(begin, end, strict=True))


def by_hand(producers: list[Row], consumers: list[Row], early: bool) -> dict[int, int]:
    """Each consumer with the start of its producer."""
    found = {}
    for row, (time, kind, ident) in enumerate(consumers, len(producers)):
        starts = [start for start, *key in producers if key == [kind, ident]]
        before = [start for start in starts if start <= time]
        if before or (starts and early):
            found[row] = max(before) if before else min(starts)
    return found


def test_the_latest_producer_before(native: Any) -> None:
    producers = [(30, 1, 7), (10, 1, 7), (20, 1, 7), (0, 2, 7), (0, 1, 8)]
    assert linked(native, producers, [(25, 1, 7), (10, 1, 7), (99, 1, 7), (5, 1, 7), (5, 2, 9)]) == [
        (2, 5),
        (1, 6),
        (0, 7),
    ]


def test_an_early_consumer_takes_the_first_producer_if_told_so(native: Any) -> None:
    assert linked(native, [(30, 1, 7), (20, 1, 7)], [(5, 1, 7)]) == []
    assert linked(native, [(30, 1, 7), (20, 1, 7)], [(5, 1, 7)], early=True) == [(1, 2)]


def test_nothing_links_to_itself(native: Any) -> None:
    column = [array("I", [0]), array("I", [1]), array("q", [5])]
    assert native.link(column, column, array("q", [0]), True, 3) == (array("I"), array("I"))


def test_many_of_one_key_stay_one_link_each(native: Any) -> None:
    producers = [((i * 7919) % 2_000, 0, 0) for i in range(2_000)]
    found = linked(native, producers, [(i, 0, 0) for i in range(2_000)])
    assert [producers[a][0] for a, _ in found] == list(range(2_000))


ROWS = st.lists(
    st.tuples(st.integers(-3, 9), st.integers(0, 1), st.sampled_from([0, 1, -1, (1 << 63) - 1])), max_size=20
)


@given(ROWS, ROWS, st.booleans())
def test_like_by_hand(producers: list[Row], consumers: list[Row], early: bool) -> None:
    found = linked(links, producers, consumers, early)
    assert {b: producers[a][0] for a, b in found} == by_hand(producers, consumers, early)
    assert all(producers[a][1:] == consumers[b - len(producers)][1:] for a, b in found)
