"""Which steps are usual: what findings and verdicts are about. The slow ones are a finding of their own."""

from __future__ import annotations

import polars as pl

from stepscope.trace.frames import take_median

_SLOW = 1.5  # times the median: more than ordinary spread, less than any warm-up
_FEWEST = 5  # fewer steps cannot tell what is usual


def outliers(lengths: pl.DataFrame) -> pl.DataFrame:
    """The rows of `lengths` (step, ns) that take over one and a half of the median; none where there are too few to tell."""
    median = take_median(lengths["ns"])
    slow = lengths.filter(pl.col("ns") > _SLOW * median)
    few = len(lengths) < _FEWEST or 2 * len(slow) > len(lengths)
    return slow.clear() if few else slow


def usual(slices: pl.DataFrame, slow: pl.DataFrame) -> pl.DataFrame:
    """The slices of an account outside the slow steps."""
    return slices.filter(~pl.col("step").is_in(slow["step"].implode())) if len(slow) else slices
