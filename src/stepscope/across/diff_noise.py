"""How much of a difference may be chance: a seeded bootstrap over ranks and steps, plus what differs from run to run.

The mean over steps is drawn again RESAMPLES times: ranks with replacement, and in each of them its steps. That shows how
steady a run is within itself. Two recordings of one job differ by more (another process, other memory, another clock), so
RUN_NOISE of the figure is added, as measured by recording the same jobs again and again (`benchmarks/diff`). Few steps
say little about their own spread: a bootstrap over n of them is widened by √(n/(n−1)) and judged by Student's t.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from stepscope.across.student import MANY, quantile, two_sided

SEED = 20_261_115
RESAMPLES = 400
MOST_DRAWN = 400_000  # values drawn for one figure
CONFIDENCE = 0.05


@dataclass(frozen=True)
class Draws:
    """Which cells each resample takes; `clusters` is how many independent things were drawn from."""

    places: pl.Series
    resamples: int
    each: int
    clusters: int


@dataclass(frozen=True)
class Noise:
    """The standard error of a difference, and its degrees of freedom."""

    error: float
    df: float

    @property
    def margin(self) -> float:
        """What the difference may be by chance, 95 of 100 times."""
        return quantile(CONFIDENCE, round(self.df, 2)) * self.error

    def chance(self, difference: float) -> float:
        """The probability of such a difference by chance."""
        if not self.error:
            return 0.0 if difference else 1.0
        return two_sided(difference / self.error, self.df)


def draws(ranks: Sequence[int], seed: int = SEED) -> Draws:
    """For cells that belong to these ranks."""
    by_rank: dict[int, list[int]] = {}
    for place, rank in enumerate(ranks):
        by_rank.setdefault(rank, []).append(place)
    groups = list(by_rank.values())
    steps = max(1, round(len(ranks) / len(groups))) if groups else 0
    each = steps * len(groups)
    resamples = max(50, min(RESAMPLES, MOST_DRAWN // max(each, 1)))
    dice = random.Random(seed)
    places = [
        place
        for _ in range(resamples)
        for _ in groups
        for place in dice.choices(groups[int(dice.random() * len(groups))], k=steps)
    ]
    clusters = len(groups) if len(groups) > 3 else len(ranks)
    return Draws(pl.Series(places, dtype=pl.UInt32), resamples, each, clusters)


def spread(values: Sequence[float], drawn: Draws) -> float | None:
    """The standard error of the mean of the values; None where there is one."""
    if drawn.clusters < 2:
        return None
    picked = pl.Series(values, dtype=pl.Float64).gather(drawn.places)
    means = picked.reshape((drawn.resamples, drawn.each)).arr.mean()
    found = means.std()
    few = math.sqrt(drawn.clusters / (drawn.clusters - 1))
    return few * found if isinstance(found, float) else None


def noise_of(
    a: Sequence[float],
    b: Sequence[float],
    a_draws: Draws,
    b_draws: Draws,
    run_noise: float,
    least: float = 0.0,
) -> Noise | None:
    """Of mean(b) − mean(a). `run_noise`: the share of a figure by which runs of one job differ; `least`: the least of it."""
    errors = [spread(values, drawn) for values, drawn in ((a, a_draws), (b, b_draws))]
    if errors[0] is None or errors[1] is None:
        return None
    within = math.hypot(errors[0], errors[1])
    larger = max(abs(_mean(a)), abs(_mean(b)))
    error = math.hypot(within, run_noise * larger, least)
    if not within:
        return Noise(error, MANY)
    freedom = a_draws.clusters + b_draws.clusters - 2
    return Noise(error, min(MANY, freedom * (error / within) ** 4))


def noise_of_one(values: Sequence[float], drawn: Draws, run_noise: float) -> Noise | None:
    """Of a mean by itself; None where there is one value."""
    within = spread(values, drawn)
    if within is None:
        return None
    error = math.hypot(within, run_noise * _mean(values))
    if not within:
        return Noise(error, MANY)
    return Noise(error, min(MANY, (drawn.clusters - 1) * (error / within) ** 4))


def surely(chances: Sequence[float], level: float) -> list[bool]:
    """Holm's rule: which of these are no accident, with at most `level` risk that any of them is one."""
    order = sorted(range(len(chances)), key=chances.__getitem__)
    kept = [False] * len(chances)
    for turn, place in enumerate(order):
        if chances[place] > level / (len(chances) - turn):
            break
        kept[place] = True
    return kept


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
