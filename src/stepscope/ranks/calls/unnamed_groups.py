"""Groups that the profile does not name, distinguished by when their calls end.

Each group has a stream of its own on a rank, but the same stream of another rank may be that of another group: of each row and
column of a grid of ranks, for example. Calls of one group end together, so that the difference of two members' clocks
is the same at each end, save for drift and the noise of transfers; of two groups it is another one each time. Where such
differences are of two clearly different sizes, ranks are of one group if they differ by the smaller. Ranks are not separated
on less: one group is what most jobs have.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from statistics import median

import polars as pl

from stepscope.registers.calibration.clocks import LEAST_END_SPREAD_NS, MOST_DRIFT
from stepscope.registers.levels import (
    FEWEST_ENDS_FOR_DRIFT,
    FEWEST_GROUP_CALLS,
    GROUP_GAP,
    GROUP_QUANTILE,
    MOST_GROUP_CALLS,
)
from stepscope.registers.policy.ranks import MOST_GROUPED_RANKS
from stepscope.trace.frames import take_smallest

Leaders = Mapping[
    tuple[int, int], int
]  # by rank and stream the lowest rank of the group, where streams have several
_MIX = 0x9E3779B97F4A7C15 - 2**64


def told_apart(ends: pl.DataFrame) -> Leaders:
    """Of anchors (key, rank, end_ns, stream); nothing for streams that have one group."""
    unnamed = ends.filter(pl.col("stream").is_not_null())
    found: dict[tuple[int, int], int] = {}
    for (stream,), rows in unnamed.group_by("stream", maintain_order=True):
        # Two groups of at least two ranks.
        if 2 * 2 <= rows["rank"].n_unique() <= MOST_GROUPED_RANKS:
            found |= {(rank, stream): leader for rank, leader in _leaders(rows).items()}
    return found


def by_group(rows: pl.DataFrame, leaders: Leaders, column: str) -> pl.DataFrame:
    """The rows (rank, stream) with another number in this column for each group of a stream."""
    if not leaders:
        return rows
    known = pl.DataFrame(
        [(rank, stream, leader) for (rank, stream), leader in leaders.items()],
        schema={"rank": pl.Int32, "stream": pl.Int32, "leader": pl.Int64},
        orient="row",
    )
    joined = rows.join(known, on=["rank", "stream"], how="left", maintain_order="left")
    mixed = pl.col(column).cast(pl.Int64, wrap_numerical=True) + (pl.col("leader") + 1) * _MIX
    told = (
        pl.when(pl.col("leader").is_null()).then(column).otherwise(mixed.cast(pl.UInt64, wrap_numerical=True))
    )
    return joined.with_columns(told.alias(column)).drop("leader")


def _leaders(rows: pl.DataFrame) -> dict[int, int]:
    """By rank the lowest one of its group; nothing if there are not at least two groups of at least two."""
    spreads = list(_spreads(rows).iter_rows())
    cut = _cut(spreads)
    if cut is None:
        return {}
    leader = {rank: rank for rank in rows["rank"].unique().sort()}
    for one, other, spread in spreads:
        if spread <= cut and leader[one] != leader[other]:
            low, high = sorted((leader[one], leader[other]))
            leader = {rank: low if led == high else led for rank, led in leader.items()}
    sizes = [list(leader.values()).count(led) for led in set(leader.values())]
    return leader if sum(size > 1 for size in sizes) > 1 else {}


def _spreads(rows: pl.DataFrame) -> pl.DataFrame:
    """one, other, spread: how much the difference of two ranks' ends varies, drift aside."""
    calls = rows.unique(["key", "rank"], keep="none", maintain_order=True)
    kept = calls.group_by("key").len().sort("len", "key", descending=True)["key"].head(MOST_GROUP_CALLS)
    calls = calls.filter(pl.col("key").is_in(kept.implode()))
    origin = take_smallest(calls["end_ns"])
    ends = calls.select("key", "rank", end=(pl.col("end_ns") - origin).cast(pl.Float64))
    pair = ["one", "other"]
    pairs = ends.rename({"rank": "one"}).join(ends.rename({"rank": "other", "end": "end_other"}), on="key")
    pairs = pairs.filter((pl.col("one") < pl.col("other")) & (pl.len().over(pair) >= FEWEST_GROUP_CALLS))
    apart = pl.col("end_other") - pl.col("end")
    x = pl.col("end") - pl.col("end").mean().over(pair)
    pairs = pairs.with_columns(x=x, apart=apart - apart.median().over(pair))
    slope = ((pl.col("x") * pl.col("apart")).sum() / (pl.col("x") ** 2).sum()).over(pair)
    bent = (
        pl.when(pl.len().over(pair) >= FEWEST_ENDS_FOR_DRIFT)
        .then(slope.clip(-MOST_DRIFT, MOST_DRIFT))
        .otherwise(0)
    )
    left = pairs.with_columns(left=pl.col("apart") - bent.fill_nan(0) * pl.col("x"))
    around = (pl.col("left") - pl.col("left").median()).abs()
    return (
        left.group_by(pair)
        .agg(spread=around.quantile(GROUP_QUANTILE, "higher").clip(LEAST_END_SPREAD_NS))
        .sort(pair)
    )


def _cut(spreads: list[tuple[int, int, float]]) -> float | None:
    """Between the sizes that differences have in a group and elsewhere, if there are two: most ranks have another rank below it."""
    nearest: dict[int, float] = {}
    for one, other, spread in spreads:
        for rank in (one, other):
            nearest[rank] = min(spread, nearest.get(rank, spread))
    if not nearest:
        return None
    usual = median(nearest.values())
    ordered = sorted(spread for _, _, spread in spreads)
    return next((low for low, high in pairwise(ordered) if low >= usual and high > GROUP_GAP * low), None)
