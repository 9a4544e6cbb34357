"""How far apart the ends of a promise are."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.finding import Interval
from stepscope.analysis.findings.registry import find_rules
from stepscope.analysis.findings.spread import (
    _BY_CODE,
    _RARE,
    OF_BOUNDS,
    OF_COPIES,
    OF_DATA,
    OF_DEVICE,
    OF_FALLBACKS,
    OF_FEW_LAUNCHES,
    OF_HOST,
    OF_KEPT,
    OF_LAUNCHES,
    OF_LOOPS,
    OF_PRODUCTS,
    OF_PYTHON,
    OF_RARE,
    OF_RESULTS,
    OF_RUNTIME,
    OF_ZEROS,
    Spread,
    spread_of,
)
from stepscope.registers.calibration.promises import BEYOND_WORK, GAINS_AT_BEST, GAINS_AT_WORST

CERTAIN = Interval(0.1, 0.1, 0.1)


@pytest.mark.parametrize(
    "spread",
    [
        OF_DEVICE,
        OF_RARE,
        OF_HOST,
        OF_RUNTIME,
        OF_RESULTS,
        OF_LOOPS,
        OF_LAUNCHES,
        OF_PRODUCTS,
        OF_PYTHON,
        OF_COPIES,
        OF_DATA,
        OF_ZEROS,
        OF_KEPT,
    ],
)
def test_ends_hold_the_middle(spread: Spread) -> None:
    """Also where nothing is in doubt; nothing gained stays nothing."""
    found = spread.around(CERTAIN)
    assert found.low < found.mid == CERTAIN.mid < found.high <= 1
    assert spread.around(Interval(1.0, 1.0, 1.0)) == Interval(1.0, 1.0, 1.0)


@pytest.mark.parametrize("spread", [OF_ZEROS, OF_KEPT])
def test_the_worst_of_what_no_profile_shows_stays(spread: Spread) -> None:
    """Some jobs gain no more than that; that of a length of samples is moved, since none did."""
    doubtful = Interval(0.2, 0.45, 1.0)
    assert spread.around(doubtful).high == 1.0
    assert OF_DATA.around(doubtful).high < 0.9


def test_what_a_fix_puts_in_place_decides_where_little_is_left() -> None:
    """A share of what goes: much of a short remainder, little of a long one."""
    spread = Spread(above=0.0, below=0.0, best=1.0, worst=1.0, remains=0.1)
    assert spread.around(CERTAIN).high == pytest.approx(0.19)
    assert spread.around(Interval(0.9, 0.9, 0.9)).high == pytest.approx(0.91)


def test_ends_are_moved_by_what_first_looks_gained() -> None:
    """Both ends a little up, never past the middle; a bound is a bound."""
    left = Interval(0.1, 0.4, 0.8)
    plain = Spread(above=0.01, below=0.0, best=1.0, worst=1.0).around(left)
    assert plain.low == pytest.approx(0.1**GAINS_AT_BEST)
    assert plain.mid == left.mid
    assert plain.high == pytest.approx(0.8**GAINS_AT_WORST)
    assert Spread(above=0.01, below=0.0, best=1.0, worst=1.0).around(Interval(0.4, 0.4, 0.4)).high == 0.4
    assert OF_BOUNDS.around(left) == left


def test_the_work_of_the_device_bounds_the_best_end() -> None:
    """Hardly any job is faster than what is left for the device, however much less the noise of steps leaves; the middle stays."""
    assert OF_PYTHON.around(CERTAIN, work=0.1).low == pytest.approx(0.1 / BEYOND_WORK)
    assert OF_PYTHON.around(CERTAIN, work=0.01) == OF_PYTHON.around(CERTAIN)
    assert OF_PYTHON.around(Interval(0.05, 0.1, 0.1), work=0.1).low == pytest.approx(0.1 / BEYOND_WORK)
    assert OF_PYTHON.around(CERTAIN, work=0.2).low == CERTAIN.mid


def test_an_op_that_leaves_the_host_takes_more_of_the_device_with_it() -> None:
    assert spread_of("cpu-fallback", False) is OF_FALLBACKS
    assert OF_FALLBACKS.around(CERTAIN, work=0.1).low < 0.9 * OF_HOST.around(CERTAIN, work=0.1).low


def test_python_and_copies_are_less_certain_than_other_work_of_the_host() -> None:
    """The code that replaces them is not known, nor what goes with them."""
    runtime, usual, python, copies = (
        each.around(CERTAIN) for each in (OF_RUNTIME, OF_HOST, OF_PYTHON, OF_COPIES)
    )
    assert runtime.low > usual.low > python.low > copies.low
    assert python.high > copies.high >= usual.high


def test_what_the_data_decide_is_as_uncertain_on_the_device() -> None:
    """All else is of the device where that decides."""
    assert spread_of("padding", True) is spread_of("padding", False) is OF_DATA
    assert spread_of("host-offload", True) is OF_BOUNDS
    assert spread_of("host-python", True) is spread_of("layout-conversion", True) is OF_DEVICE
    assert spread_of("host-python", False) is OF_PYTHON
    assert spread_of("of-a-plug-in", False) is spread_of("", False) is OF_HOST


def test_each_spread_is_of_codes_that_there_are() -> None:
    """A code that is renamed must be renamed there as well."""
    assert set(_BY_CODE) | _RARE <= {rule.code for rule in find_rules()}
    assert not set(_BY_CODE) & _RARE


def test_fixes_that_were_seldom_tried_are_less_certain() -> None:
    """On the device; their small gains may be twice what is expected, and large ones stay within a factor."""
    assert spread_of("work-in-loop", True) is OF_RARE
    assert spread_of("work-in-loop", False) is OF_HOST
    small, usual = (each.around(Interval(0.84, 0.84, 0.84)) for each in (OF_RARE, OF_DEVICE))
    assert 1 - small.low == pytest.approx(2.2 * (1 - small.mid), rel=0.05)
    assert small.low < usual.low < usual.high < small.high


def test_what_the_host_does_with_a_result_stays_at_worst() -> None:
    """Wherever the time is: gains were twice the middle, and no lower than the smallest set of changes."""
    assert spread_of("round-trip-copy", True) is spread_of("round-trip-copy", False) is OF_RESULTS
    found = OF_RESULTS.around(CERTAIN)
    assert found.low == pytest.approx((CERTAIN.mid / 1.9) ** GAINS_AT_BEST, rel=0.01)
    assert found.high == pytest.approx((CERTAIN.mid * 1.28) ** GAINS_AT_WORST, rel=0.01)
    assert OF_RESULTS.around(Interval(0.1, 0.2, 0.5)).high == pytest.approx(0.5**GAINS_AT_WORST)


def test_numpy_may_be_slower_than_in_the_recording() -> None:
    """The step without it is then a larger multiple of the device's work than the recorded one."""
    found, of_host = (each.around(Interval(0.4, 0.4, 0.4), work=0.4) for each in (OF_RESULTS, OF_HOST))
    assert found.low == pytest.approx(0.4 / 1.15)
    assert of_host.low > found.low


def test_products_on_tensor_cores_gain_little_more_than_foreseen() -> None:
    products, others = (each.around(CERTAIN) for each in (OF_PRODUCTS, OF_DEVICE))
    assert others.low < products.low < CERTAIN.mid
    assert others.high == products.high


def test_the_low_end_of_launches_is_the_least_that_people_do() -> None:
    """Whoever halves the launches gets that, and no more; doubts about other loops come together less often."""
    left = Interval(0.15, 0.3, 0.6)
    assert spread_of("launch-bound", False) is OF_LAUNCHES
    assert OF_LAUNCHES.around(left).high == pytest.approx(0.6**GAINS_AT_WORST)
    assert OF_LOOPS.around(left).high < 0.5


def test_a_few_launches_less_may_gain_nothing_where_the_host_decides() -> None:
    """The host's own speed differs by more; where much goes, or the device decides, something is gained."""
    assert spread_of("weight-casts", False) is OF_FEW_LAUNCHES
    assert OF_FEW_LAUNCHES.around(Interval(0.8, 0.84, 0.88)).high == 1.0
    assert OF_FEW_LAUNCHES.around(Interval(0.5, 0.5, 0.5)).high < 0.75
    assert spread_of("weight-casts", True) is OF_DEVICE
