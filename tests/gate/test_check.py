"""A few slow steps do not hide that all of them are above a limit."""

from __future__ import annotations

import pytest

from stepscope.gate.check import find_lower_margin


def test_five_steps_tell_by_the_shortest() -> None:
    """One in 32 that all five lie above the median."""
    assert find_lower_margin([2.0, 2.1, 2.2, 90.0, 700.0]) == pytest.approx(0.2)


def test_more_steps_tell_more() -> None:
    """Of 20, the chance that at most five lie below the median is 2 %, that six do 6 %."""
    assert find_lower_margin([float(step) for step in range(20)]) == pytest.approx(9.5 - 5)


def test_four_steps_tell_nothing() -> None:
    assert find_lower_margin([1.0, 2.0, 3.0, 4.0]) is None
