"""Chains: runs of kernels between matrix products that one fused kernel could replace, and what enters and leaves them.

A chain is a run of elementwise, reducing and copying kernels on one stream within one step; a copy that changes a layout is one,
too: a fused kernel writes its result in any order. Profiles do not identify the tensors that an op
reads, they have only sizes: a tensor that an op reads is taken for one of the same size that the chain has made before and
no op has read yet; else it enters. What no op reads leaves. At least (`bytes_least`), of each size one tensor enters, where
the first op reads one, and one leaves, where the last op writes one: the others are taken for tensors that are read again.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.compute.classes import FUSIBLE
from stepscope.trace.schema import Columns

CHAINS: Columns = {
    "chain": pl.UInt32,
    "device": pl.Int32,
    "step": pl.Int32,
    "kernels": pl.UInt32,
    "time_ns": pl.Int64,
    "bytes_total": pl.Int64,
    "bytes_in_out": pl.Int64,
    "bytes_least": pl.Int64,
}


def number_chains(kernels: pl.DataFrame) -> pl.Series:
    """For each kernel (track, step, start_ns, class, reorders, helps) the number of its chain, null where it is in none."""
    fuses = (pl.col("class").is_in(FUSIBLE) | pl.col("reorders")) & ~pl.col("helps")
    rows = kernels.select("track", "step", "start_ns", fuses=fuses).with_row_index("row")
    ordered = rows.sort("track", "start_ns")
    elsewhere = pl.any_horizontal(
        (pl.col(name) != pl.col(name).shift(1)).fill_null(True) for name in ("track", "step", "fuses")
    )
    run = elsewhere.cum_sum().cast(pl.UInt32)
    numbered = ordered.with_columns(run=run).sort("row")
    return numbered.select(pl.when("fuses").then(pl.col("run").rank("dense")).cast(pl.UInt32)).to_series()


def sum_chains(kernels: pl.DataFrame) -> pl.DataFrame:
    """The chains of two kernels or more, from kernels with chain, device, step, start_ns, time_ns, bytes, reads, writes."""
    inside = kernels.filter(pl.col("chain").is_not_null()).filter(pl.len().over("chain") > 1)
    if inside.is_empty():
        return pl.DataFrame(schema=CHAINS)
    ordered = inside.sort("chain", "start_ns").with_columns(place=pl.int_range(pl.len()))
    sums = ordered.group_by("chain", maintain_order=True).agg(
        pl.col("device", "step").first(),
        kernels=pl.len(),
        time_ns=pl.col("time_ns").sum(),
        bytes_total=pl.col("bytes").sum().round().cast(pl.Int64),
    )
    joined = sums.join(_removed(ordered), on="chain", how="left", maintain_order="left")
    left = (pl.col("bytes_total") - pl.col("removed").fill_null(0)).clip(lower_bound=0)
    least = pl.min_horizontal(pl.col("least").fill_null(0), left)
    return joined.with_columns(
        bytes_in_out=left, bytes_least=pl.when(least > 0).then(least).otherwise(left)
    ).select(pl.col(name).cast(kind) for name, kind in CHAINS.items())


def _removed(ordered: pl.DataFrame) -> pl.DataFrame:
    """chain, removed: bytes that are written and read again inside, both ways; least: bytes that enter and leave at least."""
    reads = _touched(ordered, "reads", -1, 0)
    writes = _touched(ordered, "writes", 1, 1)
    both = pl.concat([reads, writes]).sort("chain", "size", "turn")
    # Numbered in their order, chains and sizes are one key, and one running sum serves all of them.
    begins = (pl.col("chain") != pl.col("chain").shift(1)) | (pl.col("size") != pl.col("size").shift(1))
    total = pl.col("change").cum_sum()
    numbered = both.select(
        "chain", "size", "change", run=begins.fill_null(True).cum_sum(), total=total, before=total - pl.col("change")
    )  # fmt: skip
    by_size = numbered.group_by(pl.col("run").set_sorted()).agg(
        pl.col("chain", "size").first(),
        made=(pl.col("change") > 0).sum(),
        left=pl.col("total").last() - pl.min_horizontal(pl.col("total").min(), pl.col("before").first()),
        ends=(pl.col("change").first() < 0).cast(pl.Int64) + (pl.col("change").last() > 0).cast(pl.Int64),
    )
    matched = (pl.col("made").cast(pl.Int64) - pl.col("left")) * pl.col("size")
    return by_size.group_by("chain").agg(
        removed=2 * matched.sum(), least=(pl.col("ends") * pl.col("size")).sum()
    )


def _touched(ordered: pl.DataFrame, column: str, change: int, after: int) -> pl.DataFrame:
    rows = ordered.select("chain", turn=2 * pl.col("place") + after, size=column)
    return rows.explode("size").drop_nulls("size").with_columns(change=pl.lit(change))
