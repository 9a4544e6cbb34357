"""What is significant: over several tests, for counts, and of many ranks."""

from __future__ import annotations

import pytest

from stepscope.registers.levels import FAMILIES, SIGNIFICANCE
from stepscope.statistics.significance import OF_FAMILY, fisher_p_value, select_significant, sigmas_above


def test_holms_rule() -> None:
    assert select_significant([0.001, 0.04, 0.03, 0.9], 0.05) == [True, False, False, False]
    assert select_significant([0.001, 0.02, 0.012, 0.9], 0.05) == [True, True, True, False]
    assert select_significant([], 0.05) == []


def test_all_families_together_risk_what_one_test_may() -> None:
    assert pytest.approx(SIGNIFICANCE) == FAMILIES * OF_FAMILY


@pytest.mark.parametrize(
    ("a", "b", "p_value"),
    [
        ((0, 10), (2, 10), 0.4737),
        ((0, 10), (5, 10), 0.0325),
        ((8, 10), (1, 6), 0.0350),  # the textbook's
        ((0, 5), (0, 5), 1.0),
        ((3, 3), (3, 3), 1.0),
    ],
)
def test_fishers_exact_test(a: tuple[int, int], b: tuple[int, int], p_value: float) -> None:
    assert fisher_p_value(a, b) == pytest.approx(p_value, abs=5e-5)
    assert fisher_p_value(b, a) == pytest.approx(fisher_p_value(a, b))


def test_the_more_ranks_the_later_the_last_of_them() -> None:
    assert sigmas_above(1) == pytest.approx(1.645, abs=0.001)
    assert sigmas_above(64) == pytest.approx(3.16, abs=0.01)
    assert sigmas_above(0) == sigmas_above(1)
