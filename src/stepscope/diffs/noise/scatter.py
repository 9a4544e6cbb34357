"""By how much one op's time differs from recording to recording, told by all ops that did not change: the noise of this very pair.

Two recordings of a job differ by more than their steps do: another process, other memory, another neighbour. How much that
is depends on the machine and the hour, so it is not a constant but measured, on what both runs have: the names of ops
whose calls are the same kinds. Each has one vote, whatever its time: the logarithm of its time in B over that in A, at equal speed.
A change that somebody made is in a few names; what all the others differ by is chance. So the scale is taken from the
middle of the votes, and from where four of five lie, which one changed op does not move. Where a side has several
recordings, they tell it better: their votes are about their own side's mean. In a sum of many names chance averages out, as far
as no few of them make most of it.

A vote also holds what a name's own steps differ by. That is noise of its own and counted as such, so it is taken off here: with few steps
of unsteady ops it would be most of what the votes show, and count twice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from stepscope.diffs.data.samples import CELL, Samples

FEWEST_NAMES = 5
# Of a normal distribution's absolute deviations, in standard deviations: half are below the first, four of five below the second.
_HALF, _MOST = 0.6745, 1.2816
MOST = 0.8


@dataclass(frozen=True)
class Scatter:
    """The standard error of a difference between two recordings, as a share: of one name's time, and of that of all."""

    of_one: float = 0.0
    of_all: float = 0.0


def scatter(
    calls: Sequence[pl.DataFrame], sides: Sequence[Samples], factors: Sequence[Sequence[float]]
) -> Scatter | None:
    """None if few names tell."""
    by_side = [_by_recording(*each) for each in zip(calls, sides, factors, strict=True)]
    repeated = [rows for rows in by_side if rows["recording"].n_unique() > 1]
    votes = _within(repeated) if repeated else _between(by_side[0], by_side[1])
    if len(votes) < FEWEST_NAMES:
        return None
    middle = votes[len(votes) // 2] if repeated == [] else 0.0
    away = sorted(abs(vote - middle) for vote in votes)
    seen = max(away[len(away) // 2] / _HALF, away[min(int(MOST * len(away)), len(away) - 1)] / _MOST)
    own = 0.0 if repeated else _of_steps(calls, sides, factors)
    of_one = math.sqrt(max(0.0, seen * seen - own))
    return Scatter(of_one, of_one * _concentration(calls))


def _concentration(calls: Sequence[pl.DataFrame]) -> float:
    """1 if one name makes all of the time, 1/√n if n names make the same each."""
    sizes = (
        pl.concat([rows.select("name", "ns") for rows in calls])
        .group_by("name", maintain_order=True)
        .agg(pl.col("ns").sum())
    )
    total = float(sizes["ns"].sum())
    return math.sqrt(sum((float(ns) / total) ** 2 for ns in sizes["ns"])) if total else 1.0


def _by_recording(calls: pl.DataFrame, side: Samples, factors: Sequence[float]) -> pl.DataFrame:
    """recording, name, log of the time per call at equal speed."""
    sums = (
        _even(calls, side, factors)
        .group_by("recording", "name", maintain_order=True)
        .agg(pl.col("ns", "calls").sum())
    )
    return sums.filter(pl.col("ns") > 0).select(
        "recording", "name", told=(pl.col("ns") / pl.col("calls")).log()
    )


def _of_steps(
    calls: Sequence[pl.DataFrame], sides: Sequence[Samples], factors: Sequence[Sequence[float]]
) -> float:
    """The variance that a vote has by the spread of its name's steps: of the median name."""
    found = [_own(*each) for each in zip(calls, sides, factors, strict=True)]
    both = found[0].join(found[1], on="name", suffix="_b")
    middle = (both["own"] + both["own_b"]).median()
    return float(middle) if isinstance(middle, float) else 0.0


def _own(calls: pl.DataFrame, side: Samples, factors: Sequence[float]) -> pl.DataFrame:
    """name, own: the variance of its mean over steps, as a share of that mean squared."""
    per_step = (
        _even(calls, side, factors)
        .group_by(*CELL, "name", maintain_order=True)
        .agg(told=pl.col("ns").sum() / pl.col("calls").sum())
    )
    mean, spread, count = pl.col("told").mean(), pl.col("told").var(), pl.len()
    return per_step.group_by("name", maintain_order=True).agg(own=spread / count / mean.pow(2)).drop_nulls()


def _even(calls: pl.DataFrame, side: Samples, factors: Sequence[float]) -> pl.DataFrame:
    """The calls, their times at equal speed."""
    speed = side.cells.select(*CELL).with_columns(factor=pl.Series(factors, dtype=pl.Float64))
    return calls.join(speed, on=list(CELL), maintain_order="left").with_columns(
        ns=pl.col("ns") / pl.col("factor")
    )


def _between(a: pl.DataFrame, b: pl.DataFrame) -> list[float]:
    both = a.join(b, on="name", suffix="_b")
    found: list[float] = (both["told_b"] - both["told"]).sort().to_list()
    return found


def _within(sides: Sequence[pl.DataFrame]) -> list[float]:
    """Of each name, what its recordings are away from their mean; as a difference of two recordings, √2 of that."""
    found: list[float] = []
    for rows in sides:
        count = rows["recording"].n_unique()
        about = rows.with_columns(
            away=pl.col("told") - pl.col("told").mean().over("name"), seen=pl.len().over("name")
        )
        widened = math.sqrt(2 * count / (count - 1))
        found += (about.filter(pl.col("seen") == count)["away"] * widened).to_list()
    return sorted(found)
