"""The noise of a difference, by steps, ranks and recordings."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import polars as pl
import pytest

from stepscope.diffs.noise.crossed import Layout
from stepscope.diffs.noise.estimate import (
    RunNoise,
    estimate_between,
    estimate_noise,
    estimate_noise_of_one,
)
from stepscope.statistics.noise import Noise


def layout(steps: int, ranks: int = 1, recordings: int = 1) -> Layout:
    """Cells by recording, rank and step."""
    cells = [(r, k, s) for r in range(recordings) for k in range(ranks) for s in range(steps)]
    return Layout(pl.DataFrame(cells, schema=["recording", "rank", "step"], orient="row"))


def noise(a: Sequence[float], b: Sequence[float], run: RunNoise, cells: Layout) -> Noise:
    found = estimate_noise(a, b, (cells, cells), run)
    assert found is not None
    return found


def own(values: Sequence[float], cells: Layout, *, of_median: bool = False) -> Noise:
    found = estimate_noise_of_one(values, cells, 0.0, of_median=of_median)
    assert found is not None
    return found


@pytest.mark.parametrize(("of_median", "times"), [(False, 1.0), (True, 1.2533)])
def test_of_one_rank_it_is_the_standard_error(of_median: bool, times: float) -> None:
    """On average: that of a median varies by a quarter from one sample of fifty to the next."""
    dice = random.Random(1)
    samples = [[dice.gauss(100, 10) for _ in range(50)] for _ in range(30)]
    errors = [own(values, layout(50), of_median=of_median).error for values in samples]
    assert sum(errors) / len(errors) == pytest.approx(times * 10 / 50**0.5, rel=0.15)


@pytest.mark.parametrize("of_median", [False, True])
def test_steps_that_are_slow_on_all_ranks_count_once(of_median: bool) -> None:
    """Eight ranks say no more about ten steps than one."""
    steps = [100.0, 104, 96, 110, 90, 101, 99, 107, 93, 100]
    one, many = (
        own(steps, layout(10), of_median=of_median),
        own(steps * 8, layout(10, 8), of_median=of_median),
    )
    assert many.error == pytest.approx(one.error, rel=0.15)
    assert many.df == pytest.approx(one.df)


def test_ranks_that_differ_count_as_ranks() -> None:
    """Ten equal steps say no more about four ranks than one."""
    values = [100.0 + 10 * rank for rank in range(4) for _ in range(10)]
    found = own(values, layout(10, 4))
    assert found.error == pytest.approx(math.sqrt(500 / 3 / 4))
    assert found.df == pytest.approx(3)


def test_ranks_that_differ_in_both_runs_alike_are_no_noise() -> None:
    cells = layout(6, 8)
    a = [100.0 + 10 * rank + step for rank in range(8) for step in range(6)]
    apart = [100.0 + 10 * ((3 * rank) % 8) + step for rank in range(8) for step in range(6)]
    alike = noise(a, [1.5 + value for value in a], RunNoise(), cells)
    assert alike.p_value(1.5) < 1e-6
    assert noise(a, apart, RunNoise(), cells).error > 5


def test_one_step_has_no_noise_of_its_own() -> None:
    """However many ranks it has."""
    one, two = layout(1, 8), layout(2, 8)
    assert estimate_noise([1.0] * 8, [1.0] * 16, (one, two), RunNoise(0.01)) is None
    assert estimate_noise_of_one([1.0] * 8, one, 0.01) is None


def test_what_was_not_there_has_not_come_by_scatter() -> None:
    """Noise that grows with a figure doubles it easily, and makes nothing of nothing."""
    twice, new = (
        noise(first, [2.0, 2.1] * 3, RunNoise(scatter=0.5), layout(6))
        for first in ([1.0, 1.1] * 3, [0.0] * 6)
    )
    assert twice.p_value(1.0) > 0.1
    assert new.p_value(2.05) < 1e-6
    assert twice.error == pytest.approx(0.5 / math.log(2.05 / 1.05), rel=0.05)


def test_more_recordings_show_what_recordings_differ_by() -> None:
    """Steady steps, unsteady recordings: with one of each the difference is within noise, with six it is not, unless they differ."""

    def chance(a_means: Sequence[float], b_means: Sequence[float]) -> float:
        sides = [[mean + step / 100 for mean in means for step in range(4)] for means in (a_means, b_means)]
        found = noise(sides[0], sides[1], RunNoise(0.1), layout(4, 1, len(a_means)))
        return found.p_value(sum(b_means) / len(b_means) - sum(a_means) / len(a_means))

    assert chance([10], [12]) > 0.05
    assert chance([10] * 6, [12] * 6) < 0.001
    assert chance([6, 14, 9, 11, 13, 7], [12, 16, 8, 11, 15, 10]) > 0.05


def test_recordings_alone_show_their_noise() -> None:
    """Three recordings and one more: the standard deviation of the three, by √(1 + 1/3), with two degrees of freedom."""
    a = [mean for mean in (99.0, 100.0, 101.0) for _ in range(4)]
    found = estimate_between(a, [104.0] * 4, (layout(4, 1, 3), layout(4)))
    assert found is not None
    assert found.df == 2
    assert found.error == pytest.approx(math.sqrt(4 / 3))
    assert found.margin_above == pytest.approx(2.92 * math.sqrt(4 / 3), rel=1e-3)
    assert estimate_between([1.0] * 4, [1.0] * 4, (layout(4), layout(4))) is None


def test_steps_of_one_number_are_compared_with_their_like() -> None:
    """Both go up and down by a third: a difference of 2 % in each is significant. In another order it is not."""
    steps = [100.0, 140.0, 95.0, 130.0, 120.0, 90.0]
    together = noise(steps, [1.02 * step for step in steps], RunNoise(), layout(6))
    apart = noise(steps, [1.02 * step for step in reversed(steps)], RunNoise(), layout(6))
    assert together.p_value(2.25) < 0.001
    assert apart.p_value(2.25) > 0.5
