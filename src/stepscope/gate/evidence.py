"""What a profile cannot show: a limit on it is not measured, since a finding that was never looked for is not absent."""

from __future__ import annotations

import re

from stepscope.gate.wording import NO_DEVICE, NO_FINDINGS, NO_MEMORY, NO_STEPS, ONE_RANK
from stepscope.reports.model.report import Report

_OF_MEMORY = ("memory-pressure", "memory-growth")
_OF_RANKS = ("straggler",)


def has_steps(report: Report) -> bool:
    """Whether steps are marked or inferred; without steps the account is over the whole recording."""
    return report.steps.source not in ("none", "whole")


def lacks_device(report: Report) -> bool:
    """Whether nothing was recorded of a device that the job has: where its time goes cannot be seen."""
    return any(problem.code == "no-device-events" for problem in report.problems)


def explain_unseen(code: str, report: Report) -> str:
    """Why this profile cannot show whether the finding is there; empty if it can."""
    general = explain_no_findings(report)
    if general:
        return general
    if code in _failed(report):
        return NO_FINDINGS
    if code in _OF_MEMORY and not any(row.peak_bytes is not None for row in report.memory.devices):
        return NO_MEMORY
    if code in _OF_RANKS and len(report.profile.ranks) < 2 <= (report.profile.world_size or 1):
        return ONE_RANK
    return ""


def explain_no_findings(report: Report) -> str:
    """Why nothing was looked for at all; empty if it was."""
    if not has_steps(report):
        return NO_STEPS
    if lacks_device(report):
        return NO_DEVICE
    return NO_FINDINGS if "findings" in _failed(report) else ""


def _failed(report: Report) -> set[str]:
    """The words for what could not be computed: names of sections, and codes of findings."""
    titles = (problem.title for problem in report.problems if problem.code == "analysis-failed")
    return {word for title in titles for word in re.split(r"[:,\s]+", title)}
