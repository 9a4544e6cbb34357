"""Sorts and their inverse, what is met first, and the closest ancestor that is wanted."""

from __future__ import annotations

from array import array
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.native.both import builds

NONE = 0xFFFFFFFF


@pytest.fixture(params=builds("order"))
def order(request: pytest.FixtureRequest) -> ModuleType:
    module: ModuleType = request.param
    return module


def test_where_each_row_went(order: ModuleType) -> None:
    assert list(order.invert(array("I", [2, 0, 1]))) == [1, 2, 0]
    assert list(order.invert(array("I"))) == []


def test_a_number_that_is_no_row_is_refused(order: ModuleType) -> None:
    with pytest.raises(IndexError):
        order.invert(array("I", [0, 7]))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], True),
        ([(0, 5, 1)], True),
        ([(0, 5, 3), (0, 5, 3), (0, 5, 1), (0, 6, 9), (2, -1, 0)], True),
        ([(0, 5, 1), (0, 5, 2)], False),
        ([(0, 5, 1), (0, 4, 1)], False),
        ([(1, 5, 1), (0, 6, 1)], False),
    ],
)
def test_whether_events_are_in_order(
    order: ModuleType, rows: list[tuple[int, int, int]], expected: bool
) -> None:
    columns = [array(code, [row[i] for row in rows]) for i, code in enumerate("Iqq")]
    assert order.is_sorted(*columns) is expected


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3))))
def test_whether_pairs_ascend(pairs: list[tuple[int, int]]) -> None:
    from stepscope.native import order as compiled

    major, minor = (array("I", [pair[i] for pair in pairs]) for i in (0, 1))
    assert compiled.ascends(major, minor) is (pairs == sorted(set(pairs)))


def test_columns_of_different_lengths_are_refused(order: ModuleType) -> None:
    with pytest.raises(ValueError, match="differ in length"):
        order.is_sorted(array("I", [1]), array("q", [1, 2]), array("q", [1, 2]))
    with pytest.raises(ValueError, match="differ in length"):
        order.ascends(array("I", [1]), array("I", [1, 2]))


def test_rows_by_key(order: ModuleType) -> None:
    assert list(order.by_key(array("I", [2, 0, 2, 1, 0]), 3)) == [1, 4, 3, 0, 2]
    assert list(order.by_key(array("I"), 0)) == []
    with pytest.raises(IndexError):
        order.by_key(array("I", [3]), 3)


@given(st.lists(st.sampled_from([-7, 0, 9]), max_size=40))
def test_a_bit_for_each_value_that_is_not_missing(values: list[int]) -> None:
    from stepscope.native import order as compiled

    bits, count = compiled.presence(array("q", values), -7)
    assert [bits[i >> 3] >> (i & 7) & 1 for i in range(len(values))] == [int(value != -7) for value in values]
    assert count == len(values) - values.count(-7)


def test_what_is_met_first(order: ModuleType) -> None:
    assert list(order.first_rows(array("I", [5, 5, 0, 5, 2, 0]), 6)) == [0, 2, 4]
    assert list(order.first_rows(array("I"), 0)) == []
    with pytest.raises(IndexError):
        order.first_rows(array("I", [6]), 6)


@given(st.lists(st.sampled_from([0, 7, NONE]), max_size=40))
def test_a_bit_for_each_row_that_there_is(rows: list[int]) -> None:
    from stepscope.native import order as compiled

    bits = compiled.validity(array("I", rows))
    assert [bits[i >> 3] >> (i & 7) & 1 for i in range(len(rows))] == [int(row != NONE) for row in rows]
    assert len(bits) == (len(rows) + 7) // 8


def test_the_first_row_and_the_largest_of_each_key(order: ModuleType) -> None:
    key = array("I", [2, 0, 2, 0, 2])
    assert list(order.first_of_each(key, 4)) == [1, NONE, 0, NONE]
    assert list(order.largest_of_each(key, array("q", [1, 5, 7, 5, -2]), 4)) == [1, NONE, 2, NONE]
    assert list(order.first_of_each(array("I"), 1)) == [NONE]
    with pytest.raises(IndexError):
        order.first_of_each(key, 2)
    with pytest.raises(IndexError):
        order.largest_of_each(key, array("q", [0] * 5), 2)
    with pytest.raises(ValueError, match="length"):
        order.largest_of_each(key, array("q", [0]), 4)


def test_closest_wanted_ancestor(order: ModuleType) -> None:
    #        0 wanted
    #        └ 1
    #          └ 2 wanted
    #            └ 3        4 alone
    parent = array("I", [NONE, 0, 1, 2, NONE])
    assert list(order.nearest(parent, bytes([1, 0, 1, 0, 0]))) == [NONE, 0, 0, 2, NONE]


def test_a_parent_that_comes_later_is_no_parent(order: ModuleType) -> None:
    assert list(order.nearest(array("I", [1, 1, 9]), bytes([1, 1, 1]))) == [NONE, NONE, NONE]


def test_sums_over_everything_below(order: ModuleType) -> None:
    #   0: 1
    #   ├ 1: 2
    #   │ └ 2: 4     3: 8 alone
    parent = array("I", [NONE, 0, 1, NONE])
    assert list(order.subtree_sums(parent, array("q", [1, 2, 4, 8]))) == [7, 6, 4, 8]


@given(st.permutations(range(30)))
def test_inverse_undoes_the_sort(permutation: list[int]) -> None:
    from stepscope.native import order as compiled

    moved = compiled.invert(array("I", permutation))
    assert [permutation[place] for place in moved] == sorted(permutation)
