"""The noise of a difference: a seeded bootstrap over ranks and steps, plus the variation from run to run.

The mean over steps is resampled BOOTSTRAP_RESAMPLES times: ranks with replacement, and the steps within each. That shows how steady a run
is within itself. Few steps say little about their own spread, so the standard error of n steps is widened by √(n/(n−1)) and
judged by Student's t. Where both runs recorded the same steps and these correlate (the first is slow in both, the third has a
longer batch), steps are compared in pairs. Two recordings of one job differ by more (another process, other memory, another
clock): that is `RunNoise`, from `between_runs` and `scatter`, or from the recordings themselves where there are several.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from stepscope.registers.levels import (
    BOOTSTRAP_FEW_RANKS,
    BOOTSTRAP_FEWEST_RESAMPLES,
    BOOTSTRAP_MOST_DRAWN,
    BOOTSTRAP_RESAMPLES,
    BOOTSTRAP_SEED,
    FEWEST_PAIRS,
    PAIRING_SIGNIFICANCE,
    PRIOR_FREEDOM,
    SCATTER_FREEDOM,
)
from stepscope.statistics.noise import Noise
from stepscope.statistics.student_t import MANY, quantile


@dataclass(frozen=True)
class Draws:
    """Which cells each resample takes; `clusters` is the number of independent units that were resampled.

    `recording`: of each cell, where there are several recordings. `steps`: rank and number of each cell.
    """

    places: pl.Series
    resamples: int
    each: int
    clusters: int
    recording: tuple[int, ...] = ()
    steps: tuple[tuple[int, int], ...] = ()

    @property
    def recordings(self) -> int:
        """The number of recordings."""
        return len(set(self.recording)) or 1


@dataclass(frozen=True)
class RunNoise:
    """The variation between two recordings of one job, as standard errors.

    `share` of the larger figure, `least` in its unit, and `scatter`, a share that scales with the figure itself: it cannot explain
    something that one run does not have at all.
    """

    share: float = 0.0
    least: float = 0.0
    scatter: float = 0.0


def draw_cells(cells: pl.DataFrame, seed: int = BOOTSTRAP_SEED) -> Draws:
    """Resamples of these cells: within each recording its ranks, with replacement, and within each rank its steps."""
    recording = cells["recording"].to_list()
    ranks = _group_by_rank(recording, cells["rank"].to_list())
    count = sum(map(len, ranks.values()))
    steps = max(1, round(len(recording) / count)) if count else 0
    each = steps * count
    resamples = max(
        BOOTSTRAP_FEWEST_RESAMPLES, min(BOOTSTRAP_RESAMPLES, BOOTSTRAP_MOST_DRAWN // max(each, 1))
    )
    dice = random.Random(seed)
    drawn = [
        place
        for _ in range(resamples)
        for groups in ranks.values()
        for _ in groups
        for place in dice.choices(groups[int(dice.random() * len(groups))], k=steps)
    ]
    clusters = count if max(map(len, ranks.values()), default=0) > BOOTSTRAP_FEW_RANKS else len(recording)
    numbers = tuple(recording) if len(ranks) > 1 else ()
    steps_of = tuple(cells.select("rank", "step").iter_rows()) if "step" in cells.columns else ()
    return Draws(pl.Series(drawn, dtype=pl.UInt32), resamples, each, clusters, numbers, steps_of)


def _group_by_rank(recordings: Sequence[int], ranks: Sequence[int]) -> dict[int, list[list[int]]]:
    """By recording, the places of the cells of each of its ranks."""
    groups: dict[int, dict[int, list[int]]] = {}
    for place, (recording, rank) in enumerate(zip(recordings, ranks, strict=True)):
        groups.setdefault(recording, {}).setdefault(rank, []).append(place)
    return {recording: list(by_rank.values()) for recording, by_rank in groups.items()}


def bootstrap_error(values: Sequence[float], drawn: Draws, *, of_median: bool = False) -> float | None:
    """The standard error of the mean of the values, or of their median; None for a single value."""
    if drawn.clusters < 2:
        return None
    picked = pl.Series(values, dtype=pl.Float64).gather(drawn.places).reshape((drawn.resamples, drawn.each))
    error = (picked.arr.median() if of_median else picked.arr.mean()).std()
    few = math.sqrt(drawn.clusters / (drawn.clusters - 1))
    return few * error if isinstance(error, float) else None


def estimate_noise(
    a: Sequence[float], b: Sequence[float], a_draws: Draws, b_draws: Draws, run: RunNoise
) -> Noise | None:
    """Of mean(b) − mean(a). None where a side has a single sample."""
    errors = [bootstrap_error(values, drawn) for values, drawn in ((a, a_draws), (b, b_draws))]
    if errors[0] is None or errors[1] is None:
        return None
    within, freedom = math.hypot(errors[0], errors[1]), a_draws.clusters + b_draws.clusters - 2
    paired = _estimate_paired_error(a, b) if a_draws.steps and a_draws.steps == b_draws.steps else None
    if paired is not None and paired < within:
        within, freedom = paired, len(a) - 1
    means = _mean(a), _mean(b)
    scattered = run.scatter * _log_mean(*means)
    steady = math.hypot(run.share * max(map(abs, means)), run.least)
    scattered, steady = _shrink_to_recordings((a, a_draws), (b, b_draws), scattered, steady)
    error = math.hypot(within, scattered, steady)
    return Noise(error, _combine_freedom(error, (within, freedom), (scattered, SCATTER_FREEDOM)))


def _estimate_paired_error(a: Sequence[float], b: Sequence[float]) -> float | None:
    """The standard error of the mean difference of steps with the same number; None unless they correlate significantly."""
    count = len(a)
    if count < FEWEST_PAIRS:
        return None
    means = _mean(a), _mean(b)
    squares = [
        sum((value - mean) ** 2 for value in values) for values, mean in zip((a, b), means, strict=True)
    ]
    both = sum((x - means[0]) * (y - means[1]) for x, y in zip(a, b, strict=True))
    if not squares[0] or not squares[1]:
        return None
    alike = min(1.0, both / math.sqrt(squares[0] * squares[1]))
    enough = quantile(PAIRING_SIGNIFICANCE, count - 2)
    if alike <= 0 or alike * math.sqrt(count - 2) < enough * math.sqrt(1 - alike * alike):
        return None
    away = [y - x - means[1] + means[0] for x, y in zip(a, b, strict=True)]
    return math.sqrt(sum(value * value for value in away) / (count - 1) / count)


def _log_mean(a: float, b: float) -> float:
    """The logarithmic mean: a difference over it is the logarithm of the ratio."""
    if min(a, b) <= 0:
        return 0.0
    return a if math.isclose(a, b) else (b - a) / math.log(b / a)


def _shrink_to_recordings(
    a: tuple[Sequence[float], Draws], b: tuple[Sequence[float], Draws], scattered: float, steady: float
) -> tuple[float, float]:
    """The run-to-run noise of means over several recordings: a weighted mean of the prior and of the variance seen among them."""
    counts = a[1].recordings, b[1].recordings
    if counts == (1, 1):
        return scattered, steady
    away = [value for values, drawn in (a, b) for value in _center_recordings(values, drawn)]
    seen = sum(value * value for value in away)
    freedom = sum(counts) - 2
    prior = (scattered**2 + steady**2) / 2
    variance = (PRIOR_FREEDOM * prior + seen) / (PRIOR_FREEDOM + freedom)
    left = math.sqrt(variance * sum(1 / count for count in counts))
    total = math.hypot(scattered, steady)
    share = scattered / total if total else 1.0
    return left * share, left * math.sqrt(max(0.0, 1 - share * share))


def _center_recordings(values: Sequence[float], drawn: Draws) -> list[float]:
    """The mean of each recording minus the mean over all recordings."""
    if drawn.recordings == 1:
        return []
    by_recording: dict[int, list[float]] = {}
    for value, number in zip(values, drawn.recording, strict=True):
        by_recording.setdefault(number, []).append(value)
    means = [_mean(each) for each in by_recording.values()]
    return [mean - _mean(means) for mean in means]


def _combine_freedom(error: float, *parts: tuple[float, float]) -> float:
    """Degrees of freedom of a sum of errors, each with its own (Welch–Satterthwaite)."""
    uncertain = sum(size**4 / freedom for size, freedom in parts if size and freedom > 0)
    return min(MANY, error**4 / uncertain) if uncertain else MANY


def estimate_noise_of_one(
    values: Sequence[float], drawn: Draws, run_noise: float, *, of_median: bool = False
) -> Noise | None:
    """Of a mean or a median by itself; None for a single value."""
    within = bootstrap_error(values, drawn, of_median=of_median)
    if within is None:
        return None
    error = math.hypot(within, run_noise * _mean(values))
    return Noise(error, _combine_freedom(error, (within, drawn.clusters - 1)))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
