"""The standard error of a run's mean over ranks and steps, where steps are common to all ranks and ranks to all steps.

A slow step is slow on every rank, since ranks wait for each other: 64 ranks of ten steps show ten steps, not 640. So the variance
of a mean is the sum of what steps vary by, as means over ranks, and of what ranks vary by beyond that, as means over steps
(a crossed design, two-way analysis of variance). Each has its own degrees of freedom. It is what resampling whole steps
and whole ranks gives, without that method's threefold share of the residuals. In a comparison of the same ranks, what a rank
takes longer in both runs cancels out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from stepscope.diffs.data.samples import CELL
from stepscope.registers.levels import FEW_RANKS

# A standard error and its degrees of freedom.
Part = tuple[float, float]
# Means of a figure by step or by rank, with the share of the cells that each has.
_MEANS = ("mean", "share")


@dataclass(frozen=True)
class Layout:
    """The cells of one run: which recording, rank and step each figure is of."""

    cells: pl.DataFrame

    @cached_property
    def recordings(self) -> int:
        """The number of recordings."""
        return self.cells["recording"].n_unique()

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        """The ranks of all recordings, sorted."""
        return tuple(self.cells["rank"].unique().sort().to_list())

    @cached_property
    def steps(self) -> tuple[tuple[int, int], ...]:
        """Recording and number of each step, in the order of the cells."""
        steps = self.cells.select("recording", "step").unique(maintain_order=True)
        return tuple(steps.iter_rows())

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the spread of steps within recordings."""
        return len(self.steps) - self.recordings

    @property
    def shows_noise(self) -> bool:
        """Whether there are two steps of one recording, or two recordings."""
        return self.freedom > 0 or self.recordings > 1

    def split(self, values: Sequence[float]) -> Split:
        """The figures of all cells, by step and by rank."""
        rows = self.cells.select(*CELL).with_columns(value=pl.Series(values, dtype=pl.Float64))
        if len(self.ranks) == 1:
            steps = rows.select("recording", mean="value", share=1 / pl.len())
            return Split(steps, {self.ranks[0]: (_mean(values), 1.0)}, 0.0)
        own, share = pl.col("value").mean().alias("mean"), pl.len().alias("share") / len(rows)
        steps = rows.group_by("recording", "step", maintain_order=True).agg(own, share)
        ranks = rows.group_by("rank", maintain_order=True).agg(own, share)
        by_rank = {rank: (mean, part) for rank, mean, part in ranks.select("rank", *_MEANS).iter_rows()}
        return Split(steps, by_rank, self._measure_residual(rows))

    def _measure_residual(self, rows: pl.DataFrame) -> float:
        """The variance of a rank's mean by what is neither its own nor its steps', as part of the variance of the whole mean."""
        freedom = len(rows) - len(self.steps) - len(self.ranks) + 1
        if freedom <= 0:
            return 0.0
        value = pl.col("value")
        left = value - value.mean().over("recording", "step") - value.mean().over("rank") + value.mean()
        return float(rows.select((left**2).sum()).item()) / freedom / len(rows)


@dataclass(frozen=True)
class Split:
    """A figure's means by step (recording, mean, share) and by rank (mean and share); `residual` is the rest's variance of its mean."""

    steps: pl.DataFrame
    ranks: dict[int, tuple[float, float]]
    residual: float

    @property
    def step_means(self) -> list[float]:
        """The mean of each step over ranks."""
        means: list[float] = self.steps["mean"].to_list()
        return means

    def find_step_part(self, freedom: int) -> Part:
        """What steps vary by within their recordings."""
        if freedom <= 0:
            return 0.0, 0.0
        away = pl.col("mean") - (pl.col("mean") * pl.col("share")).sum().over("recording") / pl.col(
            "share"
        ).sum().over("recording")
        squares = float(self.steps.select((away**2 * pl.col("share") ** 2).sum()).item())
        return math.sqrt(squares * len(self.steps) / freedom), freedom

    def find_rank_part(self) -> Part:
        """What ranks vary by, of one run alone."""
        variance = _sum_squares([mean for mean, _ in self.ranks.values()], self._shares)
        return math.sqrt(max(0.0, variance - self.residual)), len(self.ranks) - 1

    @property
    def _shares(self) -> list[float]:
        return [share for _, share in self.ranks.values()]

    def find_pair_part(self, other: Split) -> Part:
        """What the differences of the same ranks vary by. Few ranks do not show that they differ in both runs alike: there the larger counts."""
        ranks = sorted(self.ranks)
        shares = [(self.ranks[rank][1] + other.ranks[rank][1]) / 2 for rank in ranks]
        pairs = [other.ranks[rank][0] - self.ranks[rank][0] for rank in ranks]
        residual = self.residual + other.residual
        paired = math.sqrt(max(0.0, _sum_squares(pairs, shares) - residual))
        if len(ranks) > FEW_RANKS:
            return paired, len(ranks) - 1
        apart = math.hypot(self.find_rank_part()[0], other.find_rank_part()[0])
        return max(paired, apart), 2 * (len(ranks) - 1)


def find_parts(a: Split, b: Split, layouts: tuple[Layout, Layout]) -> list[Part]:
    """The standard errors that make up that of the difference of the means: of the steps of each run, and of the ranks."""
    steps = [each.find_step_part(layout.freedom) for each, layout in zip((a, b), layouts, strict=True)]
    if len(a.ranks) == 1 and len(b.ranks) == 1:
        return steps
    if a.ranks.keys() == b.ranks.keys():
        return [*steps, a.find_pair_part(b)]
    return [*steps, *(each.find_rank_part() for each in (a, b) if len(each.ranks) > 1)]


def _sum_squares(means: Sequence[float], shares: Sequence[float]) -> float:
    """The variance of the weighted mean of these means, of independent units; 0 of a single one."""
    count = len(means)
    if count < 2:
        return 0.0
    middle = sum(mean * share for mean, share in zip(means, shares, strict=True)) / sum(shares)
    squares = sum(((mean - middle) * share) ** 2 for mean, share in zip(means, shares, strict=True))
    return squares * count / (count - 1)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
