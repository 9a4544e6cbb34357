"""What of each step is making its batch, or waiting for it; and whether slow steps are those whose batches take longer."""

from __future__ import annotations

import polars as pl

from stepscope.registers.policy.findings import MAJORITY
from stepscope.trace.frames import take_mean


def batch_times(lengths: pl.DataFrame, slices: pl.DataFrame) -> pl.DataFrame:
    """`lengths` (step, ns) with input_ns; `slices` are those of an account."""
    made = slices.filter(pl.col("part") == "input").group_by("step").agg(input_ns=pl.col("ns").sum())
    joined = lengths.join(made, on="step", how="left", maintain_order="left")
    return joined.with_columns(pl.col("input_ns").fill_null(0))


def are_mostly_batches(times: pl.DataFrame) -> bool:
    """Whether most of the time of these steps is that."""
    return int(times["input_ns"].sum()) > MAJORITY * int(times["ns"].sum())


def share_of_batches(times: pl.DataFrame, slow: pl.Series) -> float:
    """How much of what the slow steps take longer is longer in making batches; 0 if it is not most of it."""
    is_slow = times["step"].is_in(slow.implode())
    if is_slow.all() or not is_slow.any():
        return 0.0
    more, of_batches = (
        take_mean(times.filter(is_slow)[name]) - take_mean(times.filter(~is_slow)[name])
        for name in ("ns", "input_ns")
    )
    return min(1.0, of_batches / more) if of_batches > MAJORITY * more > 0 else 0.0
