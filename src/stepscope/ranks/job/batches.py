"""Batches of unequal length: replicas that do the same have more to compute and more to send in some steps than others."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.ranks.job.changes import Change, scaled
from stepscope.ranks.job.model import JobModel
from stepscope.registers.policy.job import UNEVEN_TOKENS, WITH_SIZE
from stepscope.trace.frames import take_median

_KIND = ("stage", "name", "group_size")
_PLACE = (*_KIND, "step", "nth")
_SEGMENT = ("stage", "step", "segment")
_OF_CALLS = ("row", "rank", "stage", "step", "name", "group_size", "ranks_of", "bytes", "meeting", "ns")


@dataclass(frozen=True)
class UnevenBatches:
    """`ranks` have the most to do in some step, those that cost most first; `change` is that all have the mean."""

    ranks: tuple[int, ...]
    ratio: float  # the largest batch of the typical step to the mean one
    change: Change


def uneven_batches(model: JobModel) -> UnevenBatches | None:
    """Where peers send messages of unequal size in the same place of a step, and compute as much longer.

    Of two replicas neither is the usual one, and the median of peers shows nothing: sizes show who has more to do.
    """
    calls = _sized(_differing(model))
    larger = pl.col("bytes") >= UNEVEN_TOKENS * pl.col("mean")
    differing = calls.filter(larger.any().over(*_KIND, "nth"))
    if differing.is_empty():
        return None
    loads = differing.group_by("stage", "step", "rank").agg(load=(pl.col("bytes") / pl.col("mean")).median())
    if not _computes_with(model, loads):
        return None
    most = take_median(loads.group_by("step").agg(pl.col("load").max())["load"])
    change = pl.concat([_even_work(model, loads), _even_calls(differing)])
    return UnevenBatches(_largest(loads), most, change)


def _differing(model: JobModel) -> pl.DataFrame:
    """Calls of which some peer makes larger ones; exchanges of tokens are a matter of experts."""
    calls = model.calls.select(_OF_CALLS).filter(pl.col("name") != "all_to_all", pl.col("bytes") > 0)
    sizes = calls.group_by(_KIND).agg(least=pl.col("bytes").min(), most=pl.col("bytes").max())
    kinds = sizes.filter(pl.col("most") >= UNEVEN_TOKENS * pl.col("least"))
    return calls.join(kinds, on=_KIND, how="semi", nulls_equal=True, maintain_order="left")


def _sized(calls: pl.DataFrame) -> pl.DataFrame:
    """With the mean size of those in the same place of peers."""
    calls = calls.with_columns(
        nth=pl.int_range(pl.len()).over("rank", "step", "name", "group_size", "ranks_of")
    )
    return calls.with_columns(mean=pl.col("bytes").mean().over(_PLACE))


def _computes_with(model: JobModel, loads: pl.DataFrame) -> bool:
    """Whether ranks compute longer by most of what their messages are larger."""
    sums = model.totals.select("stage", "step", "rank", ns="compute_ns")
    both = sums.with_columns(more=pl.col("ns") / pl.col("ns").mean().over("stage", "step") - 1).join(
        loads, on=["stage", "step", "rank"]
    )
    by_size = both.select(more=pl.col("more") * (pl.col("load") - 1), size=(pl.col("load") - 1) ** 2).sum()
    more, size = by_size.row(0)
    return bool(size > 0 and more >= WITH_SIZE * size)


def _even_work(model: JobModel, loads: pl.DataFrame) -> Change:
    """Work as long as with the mean batch, as far as it grows with the batch; by what else ranks differ stays."""
    work = model.work
    sums = work.group_by("rank", *_SEGMENT).agg(pl.col("compute_ns").sum())
    sums = sums.join(loads, on=["stage", "step", "rank"]).with_columns(pl.col("load") - 1)
    covariance, mean = pl.cov("load", "compute_ns"), pl.col("compute_ns").mean()
    slope = (covariance / pl.col("load").var() / mean).over("stage", "segment").fill_nan(0).clip(0)
    factors = sums.select("rank", *_SEGMENT, compute_ns_factor=1 / (1 + slope * pl.col("load")))
    mine = work.join(factors, on=["rank", *_SEGMENT], maintain_order="left")
    return scaled(mine.with_columns(input_ns_factor=pl.lit(1.0), host_ns_factor=pl.lit(1.0)))


def _even_calls(calls: pl.DataFrame) -> Change:
    """A transfer takes as long as that of its largest member."""
    met = calls.filter(pl.col("meeting").is_not_null())
    share = pl.col("mean") / pl.col("bytes").max().over("meeting")
    return met.select("row", ns=(pl.col("ns") * share).round().cast(pl.Int64))


def _largest(loads: pl.DataFrame) -> tuple[int, ...]:
    """Those with the most in some step, by how much more they have in all."""
    top = loads.filter(
        pl.col("load") >= pl.col("load").max().over("step") / UNEVEN_TOKENS, pl.col("load") > 1
    )
    sums = top.group_by("rank").agg(more=(pl.col("load") - 1).sum())
    return tuple(sums.sort("more", "rank", descending=[True, False])["rank"].to_list())
