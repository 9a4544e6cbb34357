"""How far apart the ends of a promise are."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.finding import Interval
from stepscope.analysis.findings.spread import OF_COPIES, OF_DEVICE, OF_HOST, OF_PYTHON, Spread

CERTAIN = Interval(0.1, 0.1, 0.1)


@pytest.mark.parametrize("spread", [OF_DEVICE, OF_HOST, OF_PYTHON, OF_COPIES])
def test_ends_hold_the_middle(spread: Spread) -> None:
    """Also where nothing is in doubt; nothing gained stays nothing."""
    found = spread.around(CERTAIN)
    assert found.low < found.mid == CERTAIN.mid < found.high <= 1
    assert spread.around(Interval(1.0, 1.0, 1.0)) == Interval(1.0, 1.0, 1.0)


def test_what_a_fix_puts_in_place_decides_where_little_is_left() -> None:
    """A share of what goes: much of a short remainder, little of a long one."""
    spread = Spread(best=1.0, worst=1.0, above=0.0, below=0.0, remains=0.1)
    assert spread.around(CERTAIN).high == pytest.approx(0.19)
    assert spread.around(Interval(0.9, 0.9, 0.9)).high == pytest.approx(0.91)


def test_python_and_copies_are_less_certain_than_other_work_of_the_host() -> None:
    """The code that replaces them is not known, nor what goes with them."""
    usual, python, copies = (each.around(CERTAIN) for each in (OF_HOST, OF_PYTHON, OF_COPIES))
    assert python.low < usual.low
    assert python.high > usual.high
    assert copies.low < python.low
    assert copies.high == usual.high
