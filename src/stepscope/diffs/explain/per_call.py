"""Clips of a recording hold different amounts of work: without step markers, kernels are compared by their calls as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stepscope import units
from stepscope.diffs.data.model import Row, Run
from stepscope.diffs.explain.wording import display_name, format_share_change
from stepscope.registers.policy.diffs import LEAST_KERNELS_PER_CALL, NOTABLE_CHANGE, SLIVER

_UNMARKED = ("none", "whole", "inferred")


@dataclass(frozen=True)
class _Call:
    """The mean duration of a kernel's calls in both runs."""

    row: Row
    a_ns: float
    b_ns: float

    @property
    def change(self) -> float:
        return self.b_ns / self.a_ns - 1


def describe_lone_kernel(a: Run, b: Run, step: Row, kernels: Sequence[Row]) -> str:
    """A sentence if one kernel alone takes notably longer or shorter per call; empty if not, and where steps are marked."""
    if a.step_source not in _UNMARKED and b.step_source not in _UNMARKED:
        return ""
    calls = list(_list_calls(step, kernels))
    changed = [call for call in calls if abs(call.change) > NOTABLE_CHANGE]
    if len(changed) != 1 or len(calls) < LEAST_KERNELS_PER_CALL:
        return ""
    lone = changed[0]
    most = max(abs(call.change) for call in calls if call is not lone)
    within = "" if lone.row.significant or lone.row.noise is None else ", within noise"
    return (
        f"Per call, one kernel differs: {display_name(lone.row.name)}, {units.duration(lone.a_ns)} → "
        f"{units.duration(lone.b_ns)} ({format_share_change(lone.change)}{within}); all others are within {100 * most:.0f} %."
    )


def _list_calls(step: Row, kernels: Sequence[Row]) -> list[_Call]:
    """Kernels that both runs call, whatever op launched them, and that are worth judging."""
    least = SLIVER * (step.a or 0.0)
    by_name: dict[str, list[Row]] = {}
    for row in kernels:
        if row.a and row.b and row.a_calls and row.b_calls:
            by_name.setdefault(row.name, []).append(row)
    found = []
    for rows in by_name.values():
        a_ns, b_ns, a_calls, b_calls = (
            sum(getattr(row, name) for row in rows) for name in ("a", "b", "a_calls", "b_calls")
        )
        if a_ns >= least:
            found.append(_Call(rows[0], a_ns / a_calls, b_ns / b_calls))
    return found
