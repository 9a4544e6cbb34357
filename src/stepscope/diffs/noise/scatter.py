"""How much one op's time varies from recording to recording, measured on the pair at hand by all ops that did not change.

Two recordings of a job differ by more than their steps do: another process, other memory, other load on the machine. How much
depends on the machine and the hour, so it is not a constant but measured on what both runs have: the names of ops whose calls are
of the same kinds. Each name has one vote, whatever its time: the logarithm of its time in B over that in A, at equal speed. A real
change affects a few names; the variation of all others is noise. So the scale is a robust one, from the median and the 80th
percentile of the absolute deviations, which one changed op does not move. Where a side has several recordings, they show it better:
their votes are relative to their own side's mean. In a sum of many names noise averages out, unless a few of them are most of it.

A vote also contains the variation of a name's own steps. That is counted as noise of its own, so it is subtracted here: with few
steps of unsteady ops it would be most of what the votes show, and count twice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from stepscope.diffs.data.samples import CELL, Samples
from stepscope.registers.levels import FEWEST_SCATTERED_NAMES, FOUR_FIFTHS, FOUR_FIFTHS_SIGMA, MAD_TO_SIGMA
from stepscope.trace.frames import conform, take_median

# Calls of one kind in one cell; `key` identifies the kind, and `name` is what votes.
CALLS = {
    **CELL, "key": pl.UInt64, "name": pl.String, "ns": pl.Int64, "calls": pl.Int64, "per_call": pl.Float64,
}  # fmt: skip
# The same with fractions of ns, at equal speed.
EVEN_CALLS = {**CALLS, "ns": pl.Float64}
# The logarithm of the time per call at equal speed.
VOTES = {"recording": pl.Int32, "name": pl.String, "log_ns": pl.Float64}
# The variance of a name's mean over its steps, relative to that mean squared.
VARIANCES = {"name": pl.String, "variance": pl.Float64}


@dataclass(frozen=True)
class Scatter:
    """The standard error of a difference between two recordings, as a share: of one name's time, and of that of all."""

    of_one: float = 0.0
    of_all: float = 0.0


def estimate_scatter(
    calls: Sequence[pl.DataFrame], sides: Sequence[Samples], factors: Sequence[Sequence[float]]
) -> Scatter | None:
    """From the CALLS of both sides; None if too few names vote."""
    by_side = [_collect_votes(*each) for each in zip(calls, sides, factors, strict=True)]
    repeated = [rows for rows in by_side if rows["recording"].n_unique() > 1]
    votes = _vote_within(repeated) if repeated else _vote_between(by_side[0], by_side[1])
    if len(votes) < FEWEST_SCATTERED_NAMES:
        return None
    middle = votes[len(votes) // 2] if repeated == [] else 0.0
    away = sorted(abs(vote - middle) for vote in votes)
    seen = max(
        away[len(away) // 2] * MAD_TO_SIGMA,
        away[min(int(FOUR_FIFTHS * len(away)), len(away) - 1)] / FOUR_FIFTHS_SIGMA,
    )
    own = 0.0 if repeated else _find_step_variance(calls, sides, factors)
    of_one = math.sqrt(max(0.0, seen * seen - own))
    return Scatter(of_one, of_one * _measure_concentration(calls))


def _measure_concentration(calls: Sequence[pl.DataFrame]) -> float:
    """1 if one name has all of the time, 1/√n if n names have the same time each."""
    sizes = (
        pl.concat([rows.select("name", "ns") for rows in calls])
        .group_by("name", maintain_order=True)
        .agg(pl.col("ns").sum())
    )
    total = float(sizes["ns"].sum())
    return math.sqrt(sum((float(ns) / total) ** 2 for ns in sizes["ns"])) if total else 1.0


def _collect_votes(calls: pl.DataFrame, side: Samples, factors: Sequence[float]) -> pl.DataFrame:
    """VOTES of one side."""
    sums = (
        _even_out(calls, side, factors)
        .group_by("recording", "name", maintain_order=True)
        .agg(pl.col("ns", "calls").sum())
    )
    logs = sums.filter(pl.col("ns") > 0).with_columns(log_ns=(pl.col("ns") / pl.col("calls")).log())
    return conform(logs, VOTES)


def _find_step_variance(
    calls: Sequence[pl.DataFrame], sides: Sequence[Samples], factors: Sequence[Sequence[float]]
) -> float:
    """The variance that a vote has by the spread of its name's steps: that of the median name."""
    of_sides = [_measure_variances(*each) for each in zip(calls, sides, factors, strict=True)]
    both = of_sides[0].join(of_sides[1], on="name", suffix="_b")
    return take_median(both["variance"] + both["variance_b"])


def _measure_variances(calls: pl.DataFrame, side: Samples, factors: Sequence[float]) -> pl.DataFrame:
    """VARIANCES of one side."""
    per_step = (
        _even_out(calls, side, factors)
        .group_by(*CELL, "name", maintain_order=True)
        .agg(per_call=pl.col("ns").sum() / pl.col("calls").sum())
    )
    mean, variance, count = pl.col("per_call").mean(), pl.col("per_call").var(), pl.len()
    by_name = per_step.group_by("name", maintain_order=True).agg(variance=variance / count / mean.pow(2))
    return conform(by_name.drop_nulls(), VARIANCES)


def _even_out(calls: pl.DataFrame, side: Samples, factors: Sequence[float]) -> pl.DataFrame:
    """EVEN_CALLS: the calls with their times at equal speed."""
    speed = side.cells.select(*CELL).with_columns(factor=pl.Series(factors, dtype=pl.Float64))
    even = calls.join(speed, on=list(CELL), maintain_order="left")
    return conform(even.with_columns(ns=pl.col("ns") / pl.col("factor")), EVEN_CALLS)


def _vote_between(a: pl.DataFrame, b: pl.DataFrame) -> list[float]:
    both = a.join(b, on="name", suffix="_b")
    votes: list[float] = (both["log_ns_b"] - both["log_ns"]).sort().to_list()
    return votes


def _vote_within(sides: Sequence[pl.DataFrame]) -> list[float]:
    """Of each name, how far its recordings are from their mean; as a difference of two recordings, √2 of that."""
    votes: list[float] = []
    for rows in sides:
        count = rows["recording"].n_unique()
        about = rows.with_columns(
            away=pl.col("log_ns") - pl.col("log_ns").mean().over("name"), seen=pl.len().over("name")
        )
        widened = math.sqrt(2 * count / (count - 1))
        votes += (about.filter(pl.col("seen") == count)["away"] * widened).to_list()
    return sorted(votes)
