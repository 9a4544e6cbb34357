"""Sums of the host's work before each item."""

from __future__ import annotations

from array import array

from stepscope.native.host.replay import sums_between


def test_sums_between_places() -> None:
    values = array("q", [1, 2, 3, 4])
    assert list(sums_between(values, array("I", [0, 2, 2, 4]))) == [0, 3, 0, 7]
    assert list(sums_between(values, array("I", [1, 9]))) == [1, 9]
    assert list(sums_between(array("q"), array("I", [0]))) == [0]
