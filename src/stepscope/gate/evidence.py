"""What a profile cannot show: a limit on it is unknown, since a finding that was never looked for is not absent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

NO_STEPS = "The profile has no steps."
NO_MEMORY = "Memory was not recorded."
_OF_MEMORY = ("memory-pressure", "memory-growth")
_OF_RANKS = ("straggler",)


def has_steps(report: Mapping[str, Any]) -> bool:
    """Marked or inferred; without, the account is over the whole recording."""
    return bool(report["steps"]["source"] != "none")


def why_unseen(code: str, report: Mapping[str, Any]) -> str:
    """Why this profile cannot show whether the finding is there; empty if it can."""
    general = why_no_findings(report)
    if general:
        return general
    if code in _OF_MEMORY and not any(row["peak_bytes"] is not None for row in report["memory"]["devices"]):
        return NO_MEMORY
    if code in _OF_RANKS and len(report["profile"]["ranks"]) < 2 <= (report["profile"]["world_size"] or 1):
        return "Only one rank of the job was loaded."
    return ""


def why_no_findings(report: Mapping[str, Any]) -> str:
    """Why nothing was looked for at all; empty if it was."""
    if not has_steps(report):
        return NO_STEPS
    failed = (problem["title"] for problem in report["problems"] if problem["code"] == "analysis-failed")
    if any("findings" in re.split(r"[:,\s]+", title) for title in failed):
        return "The findings could not be computed."
    return ""
