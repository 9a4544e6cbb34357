"""What stepscope says of a recording: its findings, the replayed step, and how busy the device is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import stepscope
from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options
from stepscope.reports.model.report import Report


@dataclass(frozen=True)
class Look:
    """A report in short; `busy_ns` is the device's busy time per step."""

    findings: tuple[Any, ...]
    busy_ns: float | None
    replayed_ns: float | None
    stated_ns: float | None = None  # un-profiled, as the capture found it


def look(path: Path) -> Look:
    """Read the recording and make its report."""
    profile = stepscope.load(path, cache=False)
    report: Report = profile.report()
    busy, step = report.device.busy_share, report.steps.mean_ns
    return Look(
        tuple(report.findings),
        busy * step if busy is not None and step else None,
        _replayed_ns(profile),
        report.steps.unprofiled.mean_ns if report.steps.unprofiled else None,
    )


def _replayed_ns(profile: Any) -> float | None:
    """The step without changes, as the promises play it; of the first rank."""
    rank = profile.ranks[0]
    return RankContext(rank, profile.trace(rank), Options()).plan.step_ns() or None
