"""Gains as intervals: what was measured, what was promised, and whether the two agree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any

from stepscope.units import MOST_TIMES

OUTSIDE = 0.15
# A gain that was measured once: repeated rounds of one job differ by about so much.
_ONCE = 1.1


@dataclass(frozen=True)
class Interval:
    """A gain: times as fast."""

    low: float
    mid: float
    high: float

    @property
    def width(self) -> float:
        """The high end over the low one."""
        return self.high / self.low if self.low else float("inf")

    def overlaps(self, other: Interval) -> bool:
        """Whether they have a value in common."""
        return self.low <= other.high and other.low <= self.high

    def text(self) -> str:
        """For people."""
        return f"{self.low:.2f}–{self.mid:.2f}–{self.high:.2f}"

    def rows(self) -> dict[str, float]:
        """For JSON."""
        return {name: round(value, 4) for name, value in asdict(self).items()}


def gain(rounds: Sequence[Sequence[int]], samples: Sequence[int] = (1, 1)) -> Interval | None:
    """The range that the rounds of (slow, fixed) nanoseconds span, per sample."""
    ratios = [slow / fixed * samples[1] / samples[0] for slow, fixed in rounds if slow > 0 and fixed > 0]
    return Interval(min(ratios), median(ratios), max(ratios)) if ratios else None


def measured_once(ratio: float) -> Interval:
    """A gain of which only one figure is known."""
    return Interval(ratio / _ONCE, ratio, ratio * _ONCE)


def promise(finding: Any) -> Interval:
    """What a finding promises: an interval, or in older reports a number and the most it may be."""
    found = finding.speedup
    if isinstance(found, (int, float)):
        most = getattr(finding, "speedup_max", found)
        return Interval(float(found), float(found), max(float(found), float(most)))
    if isinstance(found, dict):
        return Interval(found["low"], found["mid"], found["high"])
    return Interval(found.low, found.mid, found.high)


def is_right(promised: Interval, truth: Interval) -> bool:
    """The middle of the truth lies in the promise, or they overlap and it is at most 15 % outside; a promise of 100 is of 100 or more."""
    if promised.high >= MOST_TIMES:
        promised = replace(promised, high=math.inf)
    if promised.low <= truth.mid <= promised.high:
        return True
    near = promised.low / (1 + OUTSIDE) <= truth.mid <= promised.high * (1 + OUTSIDE)
    return near and promised.overlaps(truth)
