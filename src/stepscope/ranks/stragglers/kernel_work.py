"""What the kernels of ranks have to do: the same kernels compared launch by launch, and how many are launched, apart.

Where the host computes, ops stand for kernels, and their FLOPs for blocks; without shapes, each call counts alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import polars as pl

from stepscope.trace.frames import conform, take_median
from stepscope.trace.trace import Trace

KERNELS = {
    "rank": pl.Int32,
    "kernel": pl.UInt64,  # its name, as a number that is the same in every process
    "launches": pl.Float64,  # per step
    "blocks": pl.Float64,  # per launch
}


@dataclass(frozen=True)
class Ratios:
    """Of a rank to the median of the others: blocks of the same kernels per launch, launches of all kernels."""

    blocks: float | None = None
    launches: float | None = None


def shaped(trace: Trace) -> pl.DataFrame:
    """name, step, blocks of each kernel in the steps that computes, where launch shapes are known."""
    known = trace.kernels.filter(pl.col("grid").is_not_null()).select("event", "grid")
    rows = known.with_columns(trace.events[name].gather(known["event"]) for name in ("step", "role", "name"))
    size = pl.lit(1.0)
    for axis in range(3):
        size = size * pl.col("grid").arr.get(axis).cast(pl.Float64)
    computing = rows.filter(pl.col("step").is_not_null() & (pl.col("role") != "collective").fill_null(True))
    return computing.select(pl.col("name").cast(pl.String), "step", blocks=size)


def shaped_ops(calls: pl.DataFrame) -> pl.DataFrame:
    """The same of `op_calls`, for a job without kernels: what ops had to compute, where shapes are known, else that they were called."""
    within = calls.filter(pl.col("step").is_not_null())
    known = within.filter(pl.col("flops") > 0)
    rows, blocks = (known, pl.col("flops")) if len(known) else (within, pl.lit(1))
    return rows.select(pl.col("name").cast(pl.String), "step", blocks=blocks.cast(pl.Float64))


def kernel_work(rows: pl.DataFrame, rank: int) -> pl.DataFrame:
    """KERNELS of the rows of `shaped`."""
    steps = max(1, rows["step"].n_unique())
    found = rows.group_by("name").agg(launches=pl.len() / steps, blocks=pl.col("blocks").mean())
    numbers = [_number(name) for name in found["name"]]
    kernel = pl.Series("kernel", numbers, dtype=pl.UInt64)
    told = found.select(kernel, pl.lit(rank).alias("rank"), "launches", "blocks")
    return conform(told, KERNELS).sort("kernel")


def _number(name: str) -> int:
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big")


def ratios(kernels: pl.DataFrame, rank: int) -> Ratios:
    """How the rank's kernels compare to those of the others; a kernel that only it has shows no size."""
    mine, others = kernels.filter(pl.col("rank") == rank), kernels.filter(pl.col("rank") != rank)
    if mine.is_empty() or others.is_empty():
        return Ratios()
    usual = others.group_by("kernel").agg(n=pl.col("launches").median(), usual=pl.col("blocks").median())
    both = mine.join(usual, on="kernel")
    launches = take_median(others.group_by("rank").agg(pl.col("launches").sum())["launches"])
    as_often = both.select(
        mine=(pl.col("n") * pl.col("blocks")).sum(), usual=(pl.col("n") * pl.col("usual")).sum()
    )
    own, theirs = as_often.row(0)
    more = float(mine["launches"].sum()) / launches if launches else None
    return Ratios(own / theirs if theirs else None, more)
