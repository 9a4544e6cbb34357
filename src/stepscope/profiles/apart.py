"""Ranks whose recordings do not overlap in time."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from stepscope.trace.problems import Problem, problem
from stepscope.trace.trace import Trace
from stepscope.units import duration

# Before this a time is no time of day but a clock that began with the machine.
_CALENDAR_NS = 10**17


def ranks_apart(ranked: Sequence[tuple[int, Trace]]) -> Problem | None:
    """A problem if the ranks' recordings do not overlap in time: different windows, or different clocks."""
    if len(ranked) < 2:
        return None
    windows = {rank: window for rank, trace in ranked if (window := _window(trace)) is not None}
    if len(windows) < 2:
        return None
    late = max(windows, key=lambda rank: windows[rank][0])
    early = min(windows, key=lambda rank: windows[rank][1])
    gap = windows[late][0] - windows[early][1]
    if gap <= 0:
        return None
    return problem("ranks-apart", f"Rank {late} starts {duration(gap)} after rank {early} ended.")


def _window(trace: Trace) -> tuple[int, int] | None:
    """Start and end of the trace in wall-clock time."""
    base = trace.info.base_unix_ns
    spans = trace.events.select("start_ns", "dur_ns").filter(pl.col("dur_ns") > 0)
    first, last = spans.select(
        pl.col("start_ns").min(), last=(pl.col("start_ns") + pl.col("dur_ns")).max()
    ).row(0)
    if first is None or base + first < _CALENDAR_NS:
        return None
    return base + first, base + last
