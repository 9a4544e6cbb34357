"""Changes of a job: which nodes take another time, and which. Each is a table of row, ns; the rest stays as it was recorded."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import polars as pl

from stepscope.ranks.job.course import BY_HOST, TIMES
from stepscope.ranks.job.model import JobModel
from stepscope.registers.levels import MAD_TO_SIGMA, ORDINARY_SIGMAS
from stepscope.registers.policy.job import ORDINARY

_SEGMENT = ("stage", "step", "segment")
Change = pl.DataFrame  # row, ns


def changed(ns: pl.Series, change: Change) -> pl.Series:
    """The durations with those of the change."""
    fresh: pl.Series = ns.clone().scatter(change["row"], change["ns"])  # which works in place
    return fresh


def as_peers(model: JobModel, ranks: Collection[int]) -> Change:
    """The work of these ranks takes as long as that of the other ranks of their stage; empty where there is no other."""
    work = model.work
    late = pl.col("rank").is_in(list(ranks))
    sums = work.group_by("rank", *_SEGMENT).agg(pl.col(*TIMES).sum())
    usual = sums.filter(~late).group_by(_SEGMENT).agg(pl.col(*TIMES).median().name.suffix("_usual"))
    own = sums.filter(late).join(usual, on=_SEGMENT)
    factors = own.select("rank", *_SEGMENT, *(_factor(name) for name in TIMES))
    peers = (
        model.did.filter(~late).group_by("stage", "step").agg(pl.col(*BY_HOST).median().name.suffix("_usual"))
    )
    excess = model.did.filter(late).join(peers, on=["stage", "step"])
    mine = work.filter(late).join(factors, on=["rank", *_SEGMENT], maintain_order="left")
    return scaled(_by_what_hosts_did(mine, excess))


def _by_what_hosts_did(work: pl.DataFrame, did: pl.DataFrame) -> pl.DataFrame:
    """The work with the factors of the host's time by what hosts did, where that is known.

    Ranks that wait for a late one hide what their hosts do meanwhile, and the late one does not: gaps alone show too much. A host that
    did less than usual leaves no longer gaps when it does as much as usual: what it does more is hidden.
    `did`: rank, step, what the host did and what is usual.
    """
    more = did.select(
        "rank", "step", *((pl.col(name) - pl.col(f"{name}_usual")).alias(f"{name}_more") for name in BY_HOST)
    )
    known = work.join(more, on=["rank", "step"], how="left", maintain_order="left")
    return known.with_columns(
        pl.when(pl.col(f"{name}_more").is_null())
        .then(f"{name}_factor")
        .otherwise((1 - pl.col(f"{name}_more") / pl.col(name).sum().over("rank", "step")).clip(0, 1))
        .alias(f"{name}_factor")
        for name in BY_HOST
    )


def with_even_stages(model: JobModel) -> Change:
    """Every stage computes as long as the mean of all."""
    work = model.work
    typical = model.totals.group_by("stage", "step").agg(pl.col("compute_ns").median())
    mean = pl.col("compute_ns").mean().over("step")
    factors = typical.select("stage", "step", (mean / pl.col("compute_ns")).alias("compute_ns_factor"))
    mine = work.join(factors, on=["stage", "step"], maintain_order="left")
    mine = mine.with_columns(input_ns_factor=pl.lit(1.0), host_ns_factor=pl.lit(1.0))
    return scaled(mine)


def without_jitter(model: JobModel) -> Change:
    """Every segment takes the median of its role, times what is lasting of the rank and common to the step; those that do nearly stay."""
    work = model.work
    sums = work.group_by("rank", *_SEGMENT).agg(pl.col(*TIMES).sum())
    factors = sums.select("rank", *_SEGMENT).with_columns(_factors(sums))
    did = model.did.with_columns(
        (pl.col(name).median().over("stage") * _levels(pl.col(name))).alias(f"{name}_usual")
        for name in BY_HOST
    )
    # Step by step: there are as many rows as calls of all ranks.
    changes = [_scaled_in(step, work, factors, did) for step in model.base["step"]]
    return pl.concat(changes)


def _factors(sums: pl.DataFrame) -> list[pl.Series]:
    """Of each kind of time, one after the other: there may be as many rows as calls of all ranks."""
    whole = pl.col("compute_ns").sum().over("rank", "step")
    sums = sums.with_columns(level=_levels(whole))
    return [_unusual(sums.select("stage", "segment", "level", name), name) for name in TIMES]


def _unusual(sums: pl.DataFrame, name: str) -> pl.Series:
    usual = pl.col(name).median().over("stage", "segment") * pl.col("level")
    return sums.with_columns(usual.alias(f"{name}_usual")).select(_unless_usual(name)).to_series()


def _scaled_in(step: int, work: pl.DataFrame, factors: pl.DataFrame, did: pl.DataFrame) -> Change:
    work, factors, did = (frame.filter(pl.col("step") == step) for frame in (work, factors, did))
    mine = work.join(factors, on=["rank", *_SEGMENT], maintain_order="left")
    return scaled(_by_what_hosts_did(mine, did))


def _unless_usual(name: str) -> pl.Expr:
    """The factor where it is beyond what the part varies by on ranks of the role: long parts average out what short ones do not."""
    factor = _factor(name)
    typical = (factor - 1).abs().median().over("stage", "segment") * MAD_TO_SIGMA
    ordinary = pl.min_horizontal(ORDINARY_SIGMAS * typical, pl.lit(ORDINARY))
    is_usual = factor.is_between(1 / (1 + ordinary), 1 + ordinary)
    return pl.when(is_usual).then(1.0).otherwise(factor).alias(f"{name}_factor")


def _levels(times: pl.Expr) -> pl.Expr:
    """How the rank compares with its role over all steps, and the step with the others over all ranks."""
    typical = times.median().over("stage")
    level = times.median().over("rank", "stage") * times.median().over("stage", "step") / typical**2
    return pl.when(typical > 0).then(level).otherwise(1.0)


def with_even_experts(model: JobModel) -> Change:
    """Work between two exchanges of tokens takes the mean of the ranks that exchange them, and none gets more tokens than the others."""
    experts = expert_work(model)
    sums = experts.group_by("ranks_of", "rank", *_SEGMENT).agg(pl.col("compute_ns").sum())
    even = sums.with_columns(mean=pl.col("compute_ns").mean().over("ranks_of", *_SEGMENT))
    factors = even.select(
        "rank", *_SEGMENT, (pl.col("mean") / pl.col("compute_ns")).alias("compute_ns_factor")
    )
    mine = experts.join(factors, on=["rank", *_SEGMENT], maintain_order="left")
    work = scaled(mine.with_columns(input_ns_factor=pl.lit(1.0), host_ns_factor=pl.lit(1.0)))
    return pl.concat([work, _even_exchanges(model)])


def _even_exchanges(model: JobModel) -> Change:
    """An exchange takes as long as its busiest member; `bytes` are the larger of what it sends and gets, so the least are even shares."""
    calls = model.calls.filter(
        pl.col("name") == "all_to_all", pl.col("meeting").is_not_null(), pl.col("bytes") > 0
    )
    share = pl.col("bytes").min().over("meeting") / pl.col("bytes").max().over("meeting")
    return calls.select("row", ns=(pl.col("ns") * share).round().cast(pl.Int64))


def expert_work(model: JobModel) -> pl.DataFrame:
    """The work that begins after one all-to-all of a rank and ends at its next one, with the group that exchanges."""
    calls = model.calls.with_columns(turn=pl.int_range(1, pl.len() + 1).over("rank", "step").cast(pl.Int32))
    following = pl.col("name").shift(-1).over("rank", "step")
    exchanged = calls.filter((pl.col("name") == "all_to_all") & (following == "all_to_all"))
    between = exchanged.select("rank", "step", "ranks_of", "turn")
    return model.work.join(between, on=["rank", "step", "turn"], maintain_order="left")


def _factor(name: str) -> pl.Expr:
    usual = pl.col(f"{name}_usual") / pl.col(name)
    return pl.when(pl.col(name) > 0).then(usual).otherwise(1.0).alias(f"{name}_factor")


def scaled(rows: pl.DataFrame) -> Change:
    """Each row of work by the factors of its times."""
    parts = (pl.col(name) * _finite(f"{name}_factor") for name in TIMES)
    return rows.select("row", ns=pl.sum_horizontal(*parts).round().cast(pl.Int64)).drop_nulls()


def _finite(factor: str) -> pl.Expr:
    """What took no time has no factor."""
    return pl.when(pl.col(factor).is_finite()).then(pl.col(factor).clip(0)).otherwise(1.0)


def with_less(model: JobModel, saved_ns: Mapping[int, float], times: Collection[str]) -> Change:
    """By rank so much less work of these kinds in each step, if it has as much; of all kinds where it has none of them."""
    rows = [(rank, float(ns)) for rank, ns in saved_ns.items()]
    saved = pl.DataFrame(rows, schema={"rank": pl.Int32, "saved": pl.Float64}, orient="row")
    work = model.work.join(saved, on="rank", maintain_order="left")
    chosen = pl.sum_horizontal(*times)
    has_some = chosen.sum().over("rank") > 0
    kind = pl.when(has_some).then(chosen).otherwise("ns")
    share = (pl.col("saved") / kind.sum().over("rank", "step")).clip(0, 1)
    less = (kind * share).fill_nan(0)
    return work.select("row", ns=(pl.col("ns") - less).round().cast(pl.Int64)).drop_nulls()
