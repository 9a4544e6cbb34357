"""Tensors that no cache still has when they are read: weights of inference, of which a step reads more than the L2 holds."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.kernels.device_peaks import Peaks
from stepscope.registers.policy.findings import MAJORITY

_STEP = ("device", "step")


def reads_from_memory(rows: pl.DataFrame, peaks: dict[int | None, Peaks]) -> pl.Series:
    """For each kernel whether most that its call touches comes from outside the step; `rows` as of `kernel_work`, with device and step.

    Nothing in the step writes a tensor of that size, so it was there before, and the step reads all such tensors before it
    comes to the same one again: together they push each other out of a cache that is smaller.
    """
    read = rows.select(*_STEP, "call", "set_bytes", size="reads").explode("size").drop_nulls("size")
    written = rows.select(*_STEP, size="writes").explode("size").drop_nulls("size").unique()
    outside = read.join(written, on=[*_STEP, "size"], how="anti", nulls_equal=True)
    sizes = pl.DataFrame(
        {"device": list(peaks), "l2": [found.l2_bytes for found in peaks.values()]},
        schema={"device": pl.Int32, "l2": pl.Float64},
    )
    per_step = (
        outside.group_by(*_STEP).agg(all=pl.col("size").sum()).join(sizes, on="device", nulls_equal=True)
    )
    large = per_step.filter(pl.col("all") > pl.col("l2")).select(*_STEP)
    mine = outside.join(large, on=_STEP, how="semi", nulls_equal=True)
    calls = mine.group_by("call").agg(pl.col("size").sum(), pl.col("set_bytes").first())
    far = calls.filter(pl.col("size") > MAJORITY * pl.col("set_bytes"))["call"]
    found: pl.Series = rows["call"].is_in(far.implode())
    return found
