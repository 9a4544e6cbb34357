"""Which steps are usual: what findings and verdicts are about. The slow ones are a finding of their own."""

from __future__ import annotations

from statistics import median_low

import polars as pl

from stepscope.registers.levels import SLOW_STEP_TIMES
from stepscope.statistics.slow_steps import is_slow


def outliers(lengths: pl.DataFrame) -> pl.DataFrame:
    """The rows of `lengths` (step, ns) that are slow steps; none where there are too few to tell."""
    return lengths.filter(is_slow(pl.col("ns")))


def outliers_of_few(lengths: pl.DataFrame) -> pl.DataFrame:
    """The same where it is known from elsewhere that some steps are slow, and others are not: a few are enough then."""
    if lengths.is_empty():
        return lengths
    return lengths.filter(pl.col("ns") > SLOW_STEP_TIMES * median_low(lengths["ns"]))


def usual(slices: pl.DataFrame, slow: pl.DataFrame) -> pl.DataFrame:
    """The slices of an account outside the slow steps."""
    return slices.filter(~pl.col("step").is_in(slow["step"].implode())) if len(slow) else slices
