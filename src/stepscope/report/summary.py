"""Words and figures that several renderings take from a report."""

from __future__ import annotations

from collections import Counter

from stepscope import units
from stepscope.report.model import BreakdownRow, Finding, Report, StepRow
from stepscope.report.parts import part


def own_rows(report: Report, rank: int | None = None) -> list[StepRow]:
    """The steps of each rank's critical device, or of one rank's."""
    devices = report.steps.critical_devices
    return [
        row
        for row in report.steps.rows
        if (rank is None or row.rank == rank) and devices.get(str(row.rank), row.device) == row.device
    ]


def own_steps(report: Report) -> int:
    """How many steps the account is over, each rank's counted; 1 where it is over the whole recording."""
    return max(1, len(own_rows(report)))


def basis(report: Report) -> str:
    """What the account is over."""
    if not report.steps.rows:
        return "the whole recording, since no steps were found"
    ranks = len(report.profile.ranks)
    return f"per step, the mean of {own_steps(report):,}" + (f" on {ranks:,} ranks" if ranks > 1 else "")


def in_order(rows: list[BreakdownRow]) -> list[BreakdownRow]:
    """What keeps the device busy first, then what keeps it idle, the longest first."""
    return sorted(rows, key=lambda row: (not part(row.part).is_busy, -row.ns))


def longest_names(row: BreakdownRow, most: int = 3) -> list[tuple[str, int]]:
    """The longest names of a part, whatever thread they are on."""
    summed: Counter[str] = Counter()
    for each in row.names:
        summed[each.name] += each.ns
    return summed.most_common(most)


def gain(finding: Finding) -> str:
    """What the change would bring."""
    most = f" (at most {finding.speedup_max:.2f}×)" if finding.speedup_max > finding.speedup else ""
    return f"saves {units.duration(finding.saves_ns_per_step)} a step: {finding.speedup:.2f}× as fast{most}"
