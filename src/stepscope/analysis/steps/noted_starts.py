"""Starts of a DataLoader's workers that the capture noted around the window: those that the recorded steps missed."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import mean, median_low
from typing import Any

from stepscope.analysis.steps.loader_starts import LoaderStarts
from stepscope.analysis.steps.rhythm import Rhythm, numbered_lengths
from stepscope.registers.policy.findings import MAJORITY
from stepscope.registers.policy.steps import SLOW_STEPS_RECUR
from stepscope.statistics.slow_steps import slow_limit
from stepscope.trace.trace import Trace


def find_noted_starts(trace: Trace, rhythm: Rhythm | None) -> LoaderStarts | None:
    """The starts that make steps slow again and again.

    None where most of the slow steps have none, or where other work takes most of what these take beyond the usual, as an
    evaluation does that has a loader of its own.
    """
    if rhythm is None:
        return None
    lengths = numbered_lengths(trace)
    limit = slow_limit(list(lengths.values()))
    slow = {step for step, length in lengths.items() if length > limit}
    rows = [row for row in _rows(trace) if row["step"] in slow]
    steps = sorted({row["step"] for row in rows})
    if len(steps) <= SLOW_STEPS_RECUR or len(steps) <= MAJORITY * len(slow):
        return None
    took = median_low(row["start_ns"] + row["wait_ns"] for row in rows)
    if took <= MAJORITY * (rhythm.slow_ns - rhythm.usual_ns):
        return None
    workers = median_low(row["workers"] for row in rows)
    return LoaderStarts(tuple(steps), workers, mean(row["wait_ns"] for row in rows))


def _rows(trace: Trace) -> Iterator[dict[str, int]]:
    """Sidecars come from elsewhere: a row without one of the figures counts as none."""
    noted = trace.info.capture.get("loader_starts")
    for row in noted if isinstance(noted, list) else ():
        if isinstance(row, dict) and all(map(_is_count, _figures(row))):
            yield row


def _figures(row: dict[str, Any]) -> list[Any]:
    return [row.get(name) for name in ("step", "workers", "start_ns", "wait_ns")]


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
