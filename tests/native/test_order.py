"""Inverting a sort, and the closest ancestor that is wanted."""

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
