"""Sequences laid beside each other: as many pairs as the longest common subsequence has, in order."""

from __future__ import annotations

from array import array

from hypothesis import given
from hypothesis import strategies as st

from stepscope.native.host.align import NONE, align

sequence = st.lists(st.integers(0, 3), max_size=12)


def longest(a: list[int], b: list[int]) -> int:
    """The length of the longest common subsequence, by the book."""
    row = [0] * (len(b) + 1)
    for x in a:
        before = row
        row = [0]
        for place, y in enumerate(b):
            row.append(before[place] + 1 if x == y else max(before[place + 1], row[place]))
    return row[-1]


@given(sequence, sequence)
def test_as_many_pairs_as_possible_in_order(a: list[int], b: list[int]) -> None:
    found = align(array("I", a), array("I", b), len(a) + len(b)).tolist()
    pairs = [(place, other) for place, other in enumerate(found) if other != NONE]
    assert all(a[place] == b[other] for place, other in pairs)
    assert [other for _, other in pairs] == sorted({other for _, other in pairs})
    assert len(pairs) == longest(a, b)


def test_too_many_differences_are_none_at_all() -> None:
    a, b = array("I", [1, 2, 3, 4]), array("I", [1, 9, 3, 4])
    assert align(a, b, 2).tolist() == [0, NONE, 2, 3]
    assert align(a, b, 1).tolist() == [NONE] * 4
    assert align(array("I"), b, 9).tolist() == []
