"""Intervals of trials: right by construction, and honest on noise."""

from __future__ import annotations

import math
import random

import pytest

from stepscope.trial.estimate import compare, unchanged_difference


def test_a_change_that_halves_the_step() -> None:
    (found,) = compare([10.0, 10.1, 9.9, 10.0], [[5.0, 5.05, 4.95]])
    assert found.low < 2.0 < found.high
    assert found.mid == pytest.approx(2.0, rel=0.01)
    assert found.low > 1.8


def test_a_drift_of_the_machine_is_no_change() -> None:
    (found,) = compare([10.0, 11.0, 12.1, 13.31], [[10.488, 11.537, 12.691]])
    assert found.mid == pytest.approx(1.0, abs=0.001)


def draw(drawn: random.Random, count: int) -> list[float]:
    """Runs of one job that differ by 5 %."""
    return [math.exp(drawn.gauss(0, 0.05)) for _ in range(count)]


@pytest.mark.parametrize("changes", [1, 3])
@pytest.mark.parametrize("rounds", [2, 3, 5])
def test_without_a_change_the_interval_contains_1_in_19_of_20(rounds: int, changes: int) -> None:
    drawn = random.Random(rounds * 10 + changes)
    hits = total = 0
    for _ in range(1_500):
        for found in compare(draw(drawn, rounds + 1), [draw(drawn, rounds) for _ in range(changes)]):
            hits += found.low <= 1 <= found.high
            total += 1
    assert 0.935 <= hits / total <= 0.985


def test_the_difference_of_unchanged_runs() -> None:
    assert unchanged_difference([10.0, 11.0, 10.5]) == pytest.approx(0.1)
    assert unchanged_difference([10.0]) == 0.0
