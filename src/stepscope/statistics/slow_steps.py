"""The one definition of a slow step, an outlier: report, findings and diff all use it.

A step is slow if it takes SLOW_STEP_TIMES the median, and more than the median by SLOW_STEP_DEVIATIONS median absolute
deviations: the first keeps out what does not matter, the second ordinary spread. Neither moves with the slow steps themselves.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import polars as pl

from stepscope.registers.levels import SLOW_STEP_DEVIATIONS, SLOW_STEP_FEWEST, SLOW_STEP_TIMES


def slow_limit(durations: Sequence[float]) -> float:
    """Longer steps are slow; infinite where there are too few to say what is usual."""
    if len(durations) < SLOW_STEP_FEWEST:
        return float("inf")
    median = statistics.median(durations)
    deviation = statistics.median(abs(each - median) for each in durations)
    return max(SLOW_STEP_TIMES * median, median + SLOW_STEP_DEVIATIONS * deviation)


def is_slow(ns: pl.Expr, over: Sequence[str] = ()) -> pl.Expr:
    """The same for rows of a frame: whether each is slow among all, or among those of its group."""
    median = ns.median()
    deviation = (ns - median).abs().median()
    limit = pl.max_horizontal(SLOW_STEP_TIMES * median, median + SLOW_STEP_DEVIATIONS * deviation)
    slow = (ns > limit) & (pl.len() >= SLOW_STEP_FEWEST)
    return slow.over(list(over)) if over else slow
