"""Clips of a recording hold different amounts of work: without step markers, kernels are compared by their calls as well."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope import units
from stepscope.diffs.data.model import Run
from stepscope.diffs.explain.wording import display_name, format_share_change
from stepscope.registers.policy.diffs import LEAST_KERNELS_PER_CALL, NOTABLE_CHANGE, SLIVER
from stepscope.statistics.significance import OF_FAMILY
from stepscope.statistics.student_t import two_sided

_UNMARKED = ("none", "whole", "inferred")


@dataclass(frozen=True)
class _Calls:
    """The calls of a kernel in one recording: how many, how long, and the squared error of their mean."""

    count: int
    mean_ns: float
    error: float


@dataclass(frozen=True)
class _Kernel:
    """A kernel that both recordings call."""

    name: str
    a: _Calls
    b: _Calls

    @property
    def change(self) -> float:
        return self.b.mean_ns / self.a.mean_ns - 1

    @property
    def is_noise(self) -> bool:
        """Whether the difference is within noise, by the spread of the calls (Welch's test)."""
        spread = self.a.error + self.b.error
        if not spread:
            return False
        freedom = spread**2 / sum(each.error**2 / max(1, each.count - 1) for each in (self.a, self.b))
        t = (self.b.mean_ns - self.a.mean_ns) / math.sqrt(spread)
        return two_sided(t, max(1.0, freedom)) > OF_FAMILY


def describe_lone_kernel(a: Run, b: Run, a_clip: pl.DataFrame, b_clip: pl.DataFrame) -> str:
    """A sentence if one kernel alone takes notably longer or shorter per call; empty if not, and where steps are marked."""
    if a.step_source not in _UNMARKED and b.step_source not in _UNMARKED:
        return ""
    kernels = list(_list_kernels(a_clip, b_clip))
    changed = [each for each in kernels if abs(each.change) > NOTABLE_CHANGE]
    if len(changed) != 1 or len(kernels) < LEAST_KERNELS_PER_CALL:
        return ""
    lone = changed[0]
    most = max(abs(each.change) for each in kernels if each is not lone)
    within = ", within noise" if lone.is_noise else ""
    return (
        f"Per call, one kernel differs: {display_name(lone.name)}, {units.duration(lone.a.mean_ns)} → "
        f"{units.duration(lone.b.mean_ns)} ({format_share_change(lone.change)}{within}); all others are within {100 * most:.0f} %."
    )


def _list_kernels(a: pl.DataFrame, b: pl.DataFrame) -> Iterator[_Kernel]:
    """Kernels that both recordings call, in a step or not, and that are worth judging."""
    sums = [side.group_by("name").agg(pl.col("ns", "calls", "squares").sum()) for side in (a, b)]
    least = SLIVER * float(sums[0]["ns"].sum())
    both = (
        sums[0]
        .join(sums[1], on="name", suffix="_b")
        .filter(pl.col("ns") >= max(least, 1.0), pl.col("ns_b") > 0)
    )
    ordered = both.sort("ns", "name", descending=True).select(
        "name", "ns", "calls", "squares", "ns_b", "calls_b", "squares_b"
    )
    for name, ns, calls, squares, *of_b in ordered.iter_rows():
        yield _Kernel(name, _summed(ns, calls, squares), _summed(*of_b))


def _summed(ns: int, calls: int, squares: float) -> _Calls:
    mean = ns / calls
    variance = max(0.0, squares - ns * mean) / max(1, calls - 1)
    return _Calls(calls, mean, variance / calls)
