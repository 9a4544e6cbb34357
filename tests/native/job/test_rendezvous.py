"""Graphs of many ranks, played in both builds."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.native.both import builds

NONE = 0xFFFFFFFF


@pytest.fixture(params=builds("job.rendezvous"), scope="module")
def native(request: pytest.FixtureRequest) -> Any:
    return request.param


def graph(native: Any, edges: Sequence[tuple[int, int]], meeting: Sequence[int | None]) -> Any:
    numbers = array("I", [NONE if each is None else each for each in meeting])
    meetings = max((each + 1 for each in meeting if each is not None), default=0)
    return native.Rendezvous(
        array("I", [a for a, _ in edges]), array("I", [b for _, b in edges]), numbers, meetings
    )


def test_a_meeting_starts_when_its_last_member_has_come(native: Any) -> None:
    # Two ranks: 0 → 1 → 2 and 3 → 4 → 5; 1 and 4 meet.
    made = graph(native, [(0, 1), (1, 2), (3, 4), (4, 5)], [None, 0, None, None, 0, None])
    starts, ends = made.play(array("q", [10, 3, 1, 25, 4, 1]))
    assert made.reached == 6
    assert list(starts) == [0, 10, 28, 0, 25, 29]
    assert list(ends) == [10, 28, 29, 25, 29, 30]


def test_a_graph_is_played_again_with_other_durations(native: Any) -> None:
    made = graph(native, [(0, 1), (2, 3)], [None, 0, None, 0])
    assert list(made.play(array("q", [10, 1, 30, 1]))[1]) == [10, 31, 30, 31]
    assert list(made.play(array("q", [10, 1, 0, 1]))[1]) == [10, 11, 0, 11]


def test_what_waits_for_itself_is_left_out(native: Any) -> None:
    made = graph(native, [(0, 1), (1, 2), (2, 1)], [None, None, None])
    assert made.reached == 1
    assert list(made.play(array("q", [5, 5, 5]))[1]) == [5, 0, 0]


def test_members_that_wait_for_each_other_are_left_out(native: Any) -> None:
    made = graph(native, [(0, 1)], [0, 0])
    assert made.reached == 1
    assert list(made.play(array("q", [5, 5]))[1]) == [0, 0]


def test_nothing_is_played_of_nothing(native: Any) -> None:
    made = graph(native, [], [])
    assert [list(each) for each in made.play(array("q"))] == [[], []]


@given(st.data())
def test_ends_are_those_of_the_rules_written_out(native: Any, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 14))
    meeting = data.draw(st.lists(st.one_of(st.none(), st.integers(0, 3)), min_size=count, max_size=count))
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    edges = data.draw(st.lists(pairs, max_size=25))
    ns = data.draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))
    made = graph(native, edges, meeting)
    assert list(made.play(array("q", ns))[1]) == written_out(edges, meeting, ns)


def written_out(
    edges: Sequence[tuple[int, int]], meeting: Sequence[int | None], ns: Sequence[int]
) -> list[int]:
    """Round after round, whatever can be known; 0 for the rest."""
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    for _ in range(2 * len(ns)):
        for node in range(len(ns)):
            before = [a for a, b in edges if b == node]
            if all(each in ends for each in before):
                starts[node] = max((ends[each] for each in before), default=0)
        for node in starts:
            members = [i for i, each in enumerate(meeting) if each == meeting[node]]
            together = [node] if meeting[node] is None else members
            if all(each in starts for each in together):
                ends[node] = max(starts[each] for each in together) + ns[node]
    return [ends.get(node, 0) for node in range(len(ns))]
