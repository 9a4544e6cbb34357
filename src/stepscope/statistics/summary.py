"""Durations of steps in a few figures. Percentiles are of the sorted values, interpolated."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from stepscope.lazy import dataclass
from stepscope.registers.levels import HEAD_QUANTILE, TAIL_QUANTILE


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
        p10_ns=percentile(ordered, HEAD_QUANTILE),
        p90_ns=percentile(ordered, TAIL_QUANTILE),
        min_ns=ordered[0],
        max_ns=ordered[-1],
    )


def percentile(ordered: Sequence[int], share: float) -> int:
    """The value below which this share of the sorted values is."""
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return round(ordered[low] + (ordered[high] - ordered[low]) * (place - low))
