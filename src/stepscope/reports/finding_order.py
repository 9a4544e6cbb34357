"""In which order findings are shown."""

from __future__ import annotations

from stepscope.analysis.findings.rules import CLASSES
from stepscope.reports.model.report import Finding


def order(finding: Finding) -> tuple[int, int, float]:
    """A sort key: what threatens the run first, then by time saved."""
    return CLASSES.index(finding.class_), -finding.saves_ns_per_step, -finding.share
