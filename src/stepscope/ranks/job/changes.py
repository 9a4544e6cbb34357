"""Changes of a job: which nodes take another time, and which. Each is a table of row, ns; the rest stays as it was recorded."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from stepscope.ranks.job.course import TIMES
from stepscope.ranks.job.model import JobModel

_SEGMENT = ("stage", "step", "segment")
Change = pl.DataFrame  # row, ns


def changed(ns: pl.Series, change: Change) -> pl.Series:
    """The durations with those of the change."""
    fresh: pl.Series = ns.clone().scatter(change["row"], change["ns"])  # which works in place
    return fresh


def work_of(model: JobModel) -> pl.DataFrame:
    """The work with its row in the graph. Where ranks of a stage differ in their calls, a step is one segment."""
    rows = model.nodes.with_row_index("row").filter(pl.col("name").is_null())
    per_rank = rows.group_by("stage", "step", "rank").agg(last=pl.col("segment").max())
    uneven = per_rank.group_by("stage", "step").agg(pl.col("last").n_unique()).filter(pl.col("last") > 1)
    marked = rows.join(uneven.select("stage", "step", uneven=pl.lit(True)), on=["stage", "step"], how="left")
    segment = pl.when(pl.col("uneven").fill_null(False)).then(0).otherwise("segment").cast(pl.Int32)
    return marked.with_columns(segment=segment).drop("uneven").sort("row")


def as_peers(model: JobModel, ranks: Collection[int], times: Collection[str] = TIMES) -> Change:
    """The work of these ranks takes as long as that of the other ranks of their stage; empty where there is no other."""
    work = work_of(model)
    late = pl.col("rank").is_in(list(ranks))
    sums = work.group_by("rank", *_SEGMENT).agg(pl.col(*TIMES).sum())
    usual = sums.filter(~late).group_by(_SEGMENT).agg(pl.col(*TIMES).median().name.suffix("_usual"))
    own = sums.filter(late).join(usual, on=_SEGMENT)
    factors = own.select("rank", *_SEGMENT, *(_factor(name, name in times) for name in TIMES))
    mine = work.filter(late).join(factors, on=["rank", *_SEGMENT], maintain_order="left")
    return _scaled(mine)


def with_even_stages(model: JobModel) -> Change:
    """Every stage computes as long as the mean of all."""
    work = work_of(model)
    totals = work.group_by("stage", "step", "rank").agg(pl.col(*TIMES).sum())
    typical = totals.group_by("stage", "step").agg(pl.col("compute_ns").median())
    mean = pl.col("compute_ns").mean().over("step")
    factors = typical.select("stage", "step", (mean / pl.col("compute_ns")).alias("compute_ns_factor"))
    mine = work.join(factors, on=["stage", "step"], maintain_order="left")
    mine = mine.with_columns(input_ns_factor=pl.lit(1.0), host_ns_factor=pl.lit(1.0))
    return _scaled(mine)


def without_jitter(model: JobModel) -> Change:
    """Every segment takes the median of its role over ranks and steps, times what is lasting of the rank."""
    work = work_of(model)
    sums = work.group_by("rank", *_SEGMENT).agg(pl.col(*TIMES).sum())
    whole = pl.sum_horizontal(*TIMES).sum().over("rank", "step")
    lasting = (whole.median().over("rank", "stage") / whole.median().over("stage")).fill_nan(1.0)
    usual = pl.col(*TIMES).median().over("stage", "segment") * lasting
    factors = sums.with_columns(usual.name.suffix("_usual"))
    factors = factors.select("rank", *_SEGMENT, *(_factor(name, True) for name in TIMES))
    return _scaled(work.join(factors, on=["rank", *_SEGMENT], maintain_order="left"))


def with_even_experts(model: JobModel) -> Change:
    """Work between two exchanges of tokens takes the mean of the ranks that exchange them."""
    experts = expert_work(model)
    sums = experts.group_by("group_ranks", "rank", *_SEGMENT).agg(pl.col("compute_ns").sum())
    even = sums.with_columns(mean=pl.col("compute_ns").mean().over("group_ranks", *_SEGMENT))
    factors = even.select(
        "rank", *_SEGMENT, (pl.col("mean") / pl.col("compute_ns")).alias("compute_ns_factor")
    )
    mine = experts.join(factors, on=["rank", *_SEGMENT], maintain_order="left")
    return _scaled(mine.with_columns(input_ns_factor=pl.lit(1.0), host_ns_factor=pl.lit(1.0)))


def expert_work(model: JobModel) -> pl.DataFrame:
    """The work that begins after one all-to-all of a rank and ends at its next one, with the group that exchanges."""
    calls = model.nodes.filter(pl.col("name").is_not_null()).with_columns(
        turn=pl.int_range(1, pl.len() + 1).over("rank", "step").cast(pl.Int32)
    )
    following = pl.col("name").shift(-1).over("rank", "step")
    exchanged = calls.filter((pl.col("name") == "all_to_all") & (following == "all_to_all"))
    between = exchanged.select("rank", "step", "group_ranks", segment="turn")
    return (
        work_of(model)
        .drop("group_ranks")
        .join(between, on=["rank", "step", "segment"], maintain_order="left")
    )


def _factor(name: str, wanted: bool) -> pl.Expr:
    usual = pl.col(f"{name}_usual") / pl.col(name)
    known = pl.when(pl.col(name) > 0).then(usual).otherwise(1.0)
    return (known if wanted else pl.lit(1.0)).alias(f"{name}_factor")


def _scaled(rows: pl.DataFrame) -> Change:
    ns = pl.sum_horizontal(*(pl.col(name) * pl.col(f"{name}_factor") for name in TIMES))
    return rows.select("row", ns=ns.fill_nan(0).round().cast(pl.Int64)).drop_nulls()
