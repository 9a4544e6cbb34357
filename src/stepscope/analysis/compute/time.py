"""How long each kernel computed, as the account has it: kernels that run at once share the time that they run together."""

from __future__ import annotations

import polars as pl


def computing_time(slices: pl.DataFrame, kernels: pl.DataFrame) -> pl.DataFrame:
    """event, device, step, ns: the account's slices of `compute`, which they sum up to.

    The account gives each moment to one kernel. Where several overlap, all of them get a share of what their group has,
    by their own lengths.
    """
    length = (pl.col("end_ns") - pl.col("start_ns")).sum().alias("ns")
    own = (
        slices.filter(pl.col("part") == "compute")
        .group_by("device", "step", event="named_by", maintain_order=True)
        .agg(length)
        .select("event", "device", "step", "ns")
    )
    groups = _groups(kernels)
    together = groups.filter(pl.len().over("group") > 1)
    return own if together.is_empty() else _shared(own, together)


def _groups(kernels: pl.DataFrame) -> pl.DataFrame:
    """Kernels of one device that overlap, directly or through others, have one number."""
    rows = kernels.select("event", "device", "step", "start_ns", "dur_ns").sort("device", "start_ns")
    ended = (pl.col("start_ns") + pl.col("dur_ns")).cum_max().shift(1).over("device")
    begins = (pl.col("start_ns") >= ended).fill_null(True)
    return rows.with_columns(group=begins.cum_sum())


def _shared(own: pl.DataFrame, together: pl.DataFrame) -> pl.DataFrame:
    hidden = together.select("event", "device", "step", ns=pl.lit(0, dtype=pl.Int64))
    rows = pl.concat([own, hidden.drop_nulls("step")])
    rows = rows.group_by("event", "device", "step", maintain_order=True).agg(pl.col("ns").sum())
    rows = rows.join(
        together.select("event", "group", "dur_ns"), on="event", how="left", maintain_order="left"
    )
    alone = rows.filter(pl.col("group").is_null()).select(own.columns)
    return pl.concat([alone, _split(rows.filter(pl.col("group").is_not_null())).select(own.columns)]).filter(
        pl.col("ns") > 0
    )


def _split(rows: pl.DataFrame) -> pl.DataFrame:
    """The time of each group, device and step among its kernels, by their lengths; rounded so that it adds up."""
    rows = rows.sort("group", "step", "event")
    weight = pl.col("dur_ns").clip(lower_bound=1).cast(pl.Float64)
    begins = pl.any_horizontal(
        pl.col(key).ne_missing(pl.col(key).shift(1)) for key in ("group", "device", "step")
    )
    begins = begins | (pl.int_range(pl.len()) == 0)
    # One number for the three keys: windows over several are several times slower.
    rows = rows.with_columns(weight=weight, part=begins.cum_sum())
    of_part = rows.group_by("part", maintain_order=True).agg(
        pl.col("weight").sum().alias("weights"), pl.col("ns").sum().alias("total")
    )
    place = rows["part"] - 1
    weights, total = (of_part[name].gather(place) for name in ("weights", "total"))
    before = (of_part["weights"].cum_sum() - of_part["weights"]).gather(place)
    until = ((rows["weight"].cum_sum() - before) / weights * total).round().cast(pl.Int64)
    earlier = pl.when(pl.col("part") == pl.col("part").shift(1)).then(pl.col("until").shift(1)).otherwise(0)
    return rows.with_columns(until=until).with_columns(ns=pl.col("until") - earlier.fill_null(0))
