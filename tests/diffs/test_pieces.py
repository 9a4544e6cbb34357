"""What a diff is made of: Student's t, Holm's rule, the bootstrap, matching, batches."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import polars as pl
import pytest

from stepscope.diffs.data.match import KERNELS, OPS, match
from stepscope.diffs.explain.batch import detect_by_input, find_factor
from stepscope.diffs.noise.bootstrap import (
    Draws,
    RunNoise,
    bootstrap_error,
    estimate_noise,
)
from stepscope.diffs.noise.bootstrap import draw_cells as draws_of
from stepscope.reports.model.report import Input, InputStage, Profile, Report, Steps
from stepscope.statistics.student_t import MANY, quantile, two_sided


def draws(ranks: Sequence[int], seed: int = 1, recordings: Sequence[int] | None = None) -> Draws:
    cells = pl.DataFrame({"recording": recordings or [0] * len(ranks), "rank": ranks})
    return draws_of(cells, seed)


@pytest.mark.parametrize(
    ("t", "df", "chance"),
    [(12.706, 1, 0.05), (2.776, 4, 0.05), (2.228, 10, 0.05), (9.925, 2, 0.01), (1.96, MANY, 0.05)],
)
def test_student(t: float, df: float, chance: float) -> None:
    """Against the printed tables."""
    assert two_sided(t, df) == pytest.approx(chance, rel=2e-3)
    assert quantile(chance, df) == pytest.approx(t, rel=1e-3)


def test_the_bootstrap_finds_the_standard_error() -> None:
    dice = random.Random(1)
    values = [dice.gauss(100, 10) for _ in range(50)]
    assert bootstrap_error(values, draws([0] * 50)) == pytest.approx(10 / 50**0.5, rel=0.25)


def test_ranks_that_differ_are_drawn_as_ranks() -> None:
    """Forty steps of four ranks tell no more of ranks than four ranks do."""
    ranks = [rank for rank in range(4) for _ in range(10)]
    values = [100.0 + 10 * rank for rank in ranks]
    by_rank, by_step = bootstrap_error(values, draws(ranks)), bootstrap_error(values, draws([0] * 40))
    assert by_rank is not None
    assert by_step is not None
    assert by_rank > 2 * by_step


def test_one_step_has_no_noise_of_its_own() -> None:
    assert estimate_noise([1.0], [1.0, 2.0], draws([0]), draws([0, 0]), RunNoise(0.01)) is None


def test_false_alarms_are_as_rare_as_promised() -> None:
    """Equal runs of six noisy steps: 95 % intervals hold 0 in about 95 % of them."""
    dice = random.Random(2)
    a_draws, b_draws = draws([0] * 6), draws([0] * 6, seed=7)
    outside = 0
    for _ in range(200):
        a, b = ([dice.gauss(100, 5) for _ in range(6)] for _ in range(2))
        noise = estimate_noise(a, b, a_draws, b_draws, RunNoise())
        assert noise is not None
        outside += abs(sum(b) / 6 - sum(a) / 6) > noise.margin
    assert outside <= 20


def test_what_was_not_there_has_not_come_by_scatter() -> None:
    """Noise that grows with a figure doubles it easily, and makes nothing of nothing."""
    twice, new = (
        estimate_noise(first, [2.0, 2.1] * 3, draws([0] * 6), draws([0] * 6, 7), RunNoise(scatter=0.5))
        for first in ([1.0, 1.1] * 3, [0.0] * 6)
    )
    assert twice is not None
    assert new is not None
    assert twice.p_value(1.0) > 0.1
    assert new.p_value(2.05) < 1e-6
    assert twice.error == pytest.approx(0.5 / math.log(2.05 / 1.05), rel=0.05)


def test_more_recordings_show_what_recordings_differ_by() -> None:
    """Steady steps, unsteady recordings: with one of each the difference is within noise, with six it is not, unless they differ."""
    run = RunNoise(0.1)

    def chance(a_means: Sequence[float], b_means: Sequence[float]) -> float:
        sides = [[mean + step / 100 for mean in means for step in range(4)] for means in (a_means, b_means)]
        drawn = [
            draws([0] * len(side), seed, [place // 4 for place in range(len(side))])
            for seed, side in enumerate(sides)
        ]
        noise = estimate_noise(sides[0], sides[1], drawn[0], drawn[1], run)
        assert noise is not None
        return noise.p_value(sum(b_means) / len(b_means) - sum(a_means) / len(a_means))

    assert chance([10], [12]) > 0.05
    assert chance([10] * 6, [12] * 6) < 0.001
    assert chance([6, 14, 9, 11, 13, 7], [12, 16, 8, 11, 15, 10]) > 0.05


def test_ops_are_matched_by_all_then_by_less() -> None:
    a = [("mm", "l1", "[2]"), ("mm", "l2", "[2]"), ("add", None, "[1]"), ("old", None, None)]
    b = [("mm", "l1", "[2]"), ("mm", "l2", "[4]"), ("add", None, "[3]"), ("new", None, None)]
    found = {(pair.a[:1], pair.b[:1]): pair.by for pair in match(a, b, OPS)}
    assert found == {
        ((a[0],), (b[0],)): "name, scope and shapes",
        ((a[1],), (b[1],)): "name and scope",
        ((a[2],), (b[2],)): "name",
        ((a[3],), ()): "a",
        ((), (b[3],)): "b",
    }


def test_another_kernel_of_the_same_op_is_the_same_row() -> None:
    found = match([("sgemm", "mm", "fp32")], [("hgemm", "mm", "bf16")], KERNELS)
    assert [(pair.by, len(pair.a), len(pair.b)) for pair in found] == [("op", 1, 1)]


@pytest.mark.parametrize(
    ("a", "b", "factor"),
    [
        ("[[32, 64], [64, 10]]", "[[64, 64], [64, 10]]", 2),
        ("[[32, 64]]", "[[48, 64]]", 1.5),
        ("[[32, 64]]", "[[64, 96]]", None),
        ("[[32, 64]]", "[[32, 64, 1]]", None),
        ("[[0, 64]]", "[[8, 64]]", None),
    ],
)
def test_factors_of_shapes(a: str, b: str, factor: float | None) -> None:
    found = find_factor(a, b)
    assert (float(found) if found is not None else None) == factor


def pipeline(samples: int, batch_stage: str = "Iterator::BatchV2") -> Report:
    """Of ten steps; one sample more was begun."""
    calls = {"Iterator::Prefetch": 10, batch_stage: 11, "Iterator::Shuffle": 10 * samples + 1}
    stages = [
        InputStage(name=name, kind="other", total_ns=0, self_ns=0, calls=count)
        for name, count in calls.items()
    ]
    return Report(profile=Profile(path=""), steps=Steps(count=10), input=Input(stages=stages))


@pytest.mark.parametrize(
    ("a", "b", "factor"), [(128, 256, 2), (96, 32, 1 / 3), (128, 128, None), (128, 131, None)]
)
def test_batches_by_the_input_pipeline(a: int, b: int, factor: float | None) -> None:
    found = detect_by_input(pipeline(a), pipeline(b, "Iterator::MapAndBatch"))
    assert (found.ratio if found else None) == (pytest.approx(factor) if factor else None)


def test_steps_of_one_number_are_compared_with_their_like() -> None:
    """Both go up and down by a third: a difference of 2 % in each is significant. In another order it is not."""
    steps = [100.0, 140.0, 95.0, 130.0, 120.0, 90.0]
    cells = pl.DataFrame({"recording": [0] * 6, "rank": [0] * 6, "step": range(6)})
    drawn = draws_of(cells), draws_of(cells, 7)
    together = estimate_noise(steps, [1.02 * step for step in steps], *drawn, RunNoise())
    apart = estimate_noise(steps, [1.02 * step for step in reversed(steps)], *drawn, RunNoise())
    assert together is not None
    assert apart is not None
    assert together.p_value(2.25) < 0.001
    assert apart.p_value(2.25) > 0.5
