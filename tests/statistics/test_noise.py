"""Noise as a standard deviation, and as an interval."""

from __future__ import annotations

import random

import pytest

from stepscope.statistics.noise import Noise, sigma_of
from stepscope.statistics.student_t import MANY


def test_the_deviation_of_normal_noise_is_found_in_spite_of_outliers() -> None:
    dice = random.Random(3)
    values = [dice.gauss(0, 2) for _ in range(4_000)] + [1e6] * 100
    assert sigma_of([abs(value) for value in values]) == pytest.approx(2, rel=0.08)
    assert sigma_of([]) == 0


def test_the_interval_holds_95_of_100() -> None:
    assert Noise(1.0, MANY).margin == pytest.approx(1.96, abs=0.001)
    assert Noise(2.0, 4).margin == pytest.approx(2 * 2.776, abs=0.01)
    noise = Noise(1.5, 7)
    assert noise.p_value(noise.margin) == pytest.approx(0.05, abs=1e-6)
    assert noise.p_value(-noise.margin) == noise.p_value(noise.margin)


def test_without_noise_any_difference_is_real() -> None:
    assert (Noise(0.0, 5).p_value(1e-9), Noise(0.0, 5).p_value(0.0)) == (0.0, 1.0)
