"""How much faster the job is with a change, from runs that alternate with unchanged ones.

Runs of one job differ by 1.2 to 1.6 times between machines and hours, so each changed run is held against the unchanged runs just before and
after it, in logarithms. What the unchanged runs differ by among themselves is part of the noise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from stepscope.analysis.findings.finding import Interval
from stepscope.registers.levels import TRIAL_ALPHA
from stepscope.statistics.student_t import quantile

_LEAST_SPREAD = 1e-4  # of a run: clocks and schedulers are no better


def compare(unchanged: Sequence[float], changed: Sequence[Sequence[float]]) -> list[Interval]:
    """One speed-up for each change, times faster with a 95 % interval. `unchanged` has a run before each round and one after the last; `changed` a row per change, by round."""
    logs = [math.log(each) for each in unchanged]
    count = len(changed)
    rows = [
        [
            _between(logs, round_, (place + 1) / (count + 1)) - math.log(each)
            for round_, each in enumerate(row)
        ]
        for place, row in enumerate(changed)
    ]
    spread, freedom = _spread(logs, rows)
    return [_interval(row, spread, freedom) for row in rows]


def unchanged_difference(unchanged: Sequence[float]) -> float:
    """By how much two unchanged runs in a row differ, at most, as a share."""
    pairs = itertools.pairwise(unchanged)
    return max((abs(math.exp(abs(math.log(b / a))) - 1) for a, b in pairs), default=0.0)


def _between(logs: Sequence[float], round_: int, share: float) -> float:
    before, after = logs[round_], logs[min(round_ + 1, len(logs) - 1)]
    return before + share * (after - before)


def _spread(logs: Sequence[float], rows: Sequence[Sequence[float]]) -> tuple[float, int]:
    """The standard deviation of a single run, pooled over all changes and the unchanged runs, and its degrees of freedom."""
    squares, freedom = 0.0, 0
    for row in rows:
        # A difference has the variance of its run and of half a run on either side, which it shares with its neighbours.
        mean, of_one = sum(row) / len(row), 1.5 - 0.5 / len(row)
        squares += sum((each - mean) ** 2 for each in row) / of_one
        freedom += len(row) - 1
    # Pairs that share a run are not independent: every other one counts.
    for before, after in list(itertools.pairwise(logs))[::2]:
        squares += (after - before) ** 2 / 2
        freedom += 1
    return math.sqrt(squares / freedom) if freedom else 0.0, freedom


def _interval(row: Sequence[float], spread: float, freedom: int) -> Interval:
    count = len(row)
    mean = sum(row) / count
    error = max(spread, _LEAST_SPREAD) * math.sqrt(1 / count + (count - 0.5) / count**2)
    half = quantile(TRIAL_ALPHA, freedom) * error
    return Interval(math.exp(mean - half), math.exp(mean), math.exp(mean + half))
