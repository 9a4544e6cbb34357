"""Durations of steps in a few figures. Percentiles are of the sorted values, interpolated; outliers are judged robustly.

An outlier is longer than the median by five times the median absolute deviation and by a fifth of the median: the
first keeps ordinary spread out, the second keeps out steps that are slow only because all others are equal.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

DEVIATIONS = 5
EXCESS = 1.2


@dataclass(frozen=True)
class Spread:
    """Named as in the report."""

    median_ns: int
    mean_ns: int
    p10_ns: int
    p90_ns: int
    min_ns: int
    max_ns: int


def spread(durations: Sequence[int]) -> Spread | None:
    """The figures, or None where there are no durations."""
    if not durations:
        return None
    ordered = sorted(durations)
    return Spread(
        median_ns=round(statistics.median(ordered)),
        mean_ns=round(sum(ordered) / len(ordered)),
        p10_ns=percentile(ordered, 0.1),
        p90_ns=percentile(ordered, 0.9),
        min_ns=ordered[0],
        max_ns=ordered[-1],
    )


def percentile(ordered: Sequence[int], share: float) -> int:
    """The value below which this share of the sorted values lies."""
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return round(ordered[low] + (ordered[high] - ordered[low]) * (place - low))


def outlier_limit(durations: Sequence[int]) -> float:
    """Durations above this are outliers; infinite for fewer than four, which say nothing of what is usual."""
    if len(durations) < 4:
        return float("inf")
    median = statistics.median(durations)
    deviation = statistics.median(abs(each - median) for each in durations)
    return max(median + DEVIATIONS * deviation, EXCESS * median)
