"""The noise of a difference: the spread of ranks and steps, plus the variation from run to run.

What steps and ranks vary by (`crossed`) shows how steady a run is within itself; few steps say little about their own spread, so
it is judged by Student's t. Where both runs recorded the same steps and these correlate (the first is slow in both, the third
has a longer batch), steps are compared in pairs. Two recordings of one job differ by more (another process, other memory,
another clock): that is `RunNoise`, from `between_runs` and `scatter`, or from the recordings themselves where there are several.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from stepscope.diffs.noise.crossed import Layout, Part, Split, find_parts
from stepscope.registers.levels import (
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

Layouts = tuple[Layout, Layout]


@dataclass(frozen=True)
class RunNoise:
    """The variation between two recordings of one job, as standard errors.

    `share` of the larger figure, `least` in its unit, and `scatter`, a share that scales with the figure itself: it cannot explain
    something that one run does not have at all.
    """

    share: float = 0.0
    least: float = 0.0
    scatter: float = 0.0


def estimate_noise(a: Sequence[float], b: Sequence[float], layouts: Layouts, run: RunNoise) -> Noise | None:
    """Of mean(b) − mean(a). None where a side has a single step, and no other recording."""
    if not all(layout.shows_noise for layout in layouts):
        return None
    parts = _find_within(a, b, layouts)
    means = _mean(a), _mean(b)
    scattered = run.scatter * _log_mean(*means)
    steady = math.hypot(run.share * max(map(abs, means)), run.least)
    scattered, steady = _shrink_to_recordings((a, b), layouts, scattered, steady)
    error = math.hypot(*(size for size, _ in parts), scattered, steady)
    return Noise(error, _combine_freedom(error, *parts, (scattered, SCATTER_FREEDOM)))


def estimate_between(a: Sequence[float], b: Sequence[float], layouts: Layouts) -> Noise | None:
    """The same by the means of the recordings alone, which vary by all that runs of one job vary by; None without a repeated one.

    All recordings of a job are taken to vary alike; where one side has far fewer steps, by what its steps add to that.
    """
    counts = [layout.recordings for layout in layouts]
    freedom = sum(counts) - 2
    if freedom < 1:
        return None
    splits = [layout.split(values) for layout, values in zip(layouts, (a, b), strict=True)]
    seen = sum(
        away**2 for values, layout in zip((a, b), layouts, strict=True) for away in _center(values, layout)
    )
    variance = seen / freedom
    error = math.sqrt(variance * sum(1 / count for count in counts) + _find_extra(splits, layouts))
    return Noise(error, freedom)


def _find_extra(splits: Sequence[Split], layouts: Layouts) -> float:
    """The variance that the mean of a side with a single recording has by its steps, beyond that of the other's recordings."""
    per_recording = [
        split.find_step_part(layout.freedom)[0] ** 2 * layout.recordings
        for split, layout in zip(splits, layouts, strict=True)
    ]
    alone = [place for place, layout in enumerate(layouts) if layout.recordings == 1]
    return sum(max(0.0, per_recording[place] - per_recording[1 - place]) for place in alone)


def _find_within(a: Sequence[float], b: Sequence[float], layouts: Layouts) -> list[Part]:
    """The standard errors by steps and ranks; by pairs of steps where these correlate."""
    ours, theirs = layouts[0].split(a), layouts[1].split(b)
    parts = find_parts(ours, theirs, layouts)
    if layouts[0].steps != layouts[1].steps or layouts[0].recordings > 1:
        return parts
    paired = _estimate_paired_error(ours.step_means, theirs.step_means)
    if paired is None or paired >= math.hypot(parts[0][0], parts[1][0]):
        return parts
    return [(paired, layouts[0].freedom), *parts[2:]]


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
    values: tuple[Sequence[float], Sequence[float]], layouts: Layouts, scattered: float, steady: float
) -> tuple[float, float]:
    """The run-to-run noise of means over several recordings: a weighted mean of the prior and of the variance seen among them."""
    counts = layouts[0].recordings, layouts[1].recordings
    if counts == (1, 1):
        return scattered, steady
    seen = sum(
        away**2 for each, layout in zip(values, layouts, strict=True) for away in _center(each, layout)
    )
    freedom = sum(counts) - 2
    prior = (scattered**2 + steady**2) / 2
    variance = (PRIOR_FREEDOM * prior + seen) / (PRIOR_FREEDOM + freedom)
    left = math.sqrt(variance * sum(1 / count for count in counts))
    total = math.hypot(scattered, steady)
    share = scattered / total if total else 1.0
    return left * share, left * math.sqrt(max(0.0, 1 - share * share))


def _center(values: Sequence[float], layout: Layout) -> list[float]:
    """The mean of each recording minus the mean over all recordings."""
    if layout.recordings == 1:
        return []
    rows = layout.cells.select("recording", value=pl.Series(values, dtype=pl.Float64))
    means: list[float] = rows.group_by("recording", maintain_order=True).mean()["value"].to_list()
    return [mean - _mean(means) for mean in means]


def _combine_freedom(error: float, *parts: Part) -> float:
    """Degrees of freedom of a sum of errors, each with its own (Welch–Satterthwaite)."""
    uncertain = sum(size**4 / freedom for size, freedom in parts if size and freedom > 0)
    return min(MANY, error**4 / uncertain) if uncertain else MANY


def estimate_noise_of_one(
    values: Sequence[float], layout: Layout, run_noise: float, *, of_median: bool = False
) -> Noise | None:
    """Of a mean or a median by itself; None for a single step."""
    if layout.freedom < 1:
        return None
    split = layout.split(values)
    parts = [split.find_step_part(layout.freedom), split.find_rank_part()]
    if of_median:
        parts = [(_bootstrap_median(values, layout), layout.freedom)]
    error = math.hypot(*(size for size, _ in parts), run_noise * _mean(values))
    return Noise(error, _combine_freedom(error, *parts))


def _bootstrap_median(values: Sequence[float], layout: Layout) -> float:
    """The standard error of the median of all cells: whole steps and whole ranks are drawn with replacement, with a fixed seed."""
    grid = _place_cells(layout)
    steps, ranks = len(grid), len(layout.ranks)
    each = steps * ranks
    resamples = max(
        BOOTSTRAP_FEWEST_RESAMPLES, min(BOOTSTRAP_RESAMPLES, BOOTSTRAP_MOST_DRAWN // max(each, 1))
    )
    dice = random.Random(BOOTSTRAP_SEED)
    drawn: list[int | None] = []
    for _ in range(resamples):
        some = dice.choices(range(ranks), k=ranks)
        drawn += [row[rank] for row in dice.choices(grid, k=steps) for rank in some]
    picked = pl.Series(values, dtype=pl.Float64).gather(pl.Series(drawn, dtype=pl.UInt32))
    error = picked.reshape((resamples, each)).arr.median().std()
    return math.sqrt(steps / (steps - 1)) * error if isinstance(error, float) else 0.0


def _place_cells(layout: Layout) -> list[list[int | None]]:
    """By step and rank, the place of that cell; None where a rank does not have the step."""
    column = {rank: place for place, rank in enumerate(layout.ranks)}
    grid: dict[tuple[int, int], list[int | None]] = {step: [None] * len(column) for step in layout.steps}
    cells = layout.cells.select("recording", "step", "rank").iter_rows()
    for place, (recording, step, rank) in enumerate(cells):
        grid[recording, step][column[rank]] = place
    return list(grid.values())


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
