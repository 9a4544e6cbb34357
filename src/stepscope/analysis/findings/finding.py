"""A finding: the one type from a rule to the report."""

from __future__ import annotations

from typing import Any

import msgspec

# What threatens the run first; within a class findings sort by time saved.
CLASSES = ("capture", "memory", "time", "advice")


class Finding(msgspec.Struct, kw_only=True):
    """A diagnosed bottleneck: evidence, what to change, and what that would save."""

    code: str
    class_: str = msgspec.field(name="class")
    title: str
    detail: str
    evidence: dict[str, Any] = {}
    share: float = 0.0
    saves_ns_per_step: int = 0
    speedup: float = 1.0
    speedup_max: float = 1.0
    fix: str = ""
    page: str = "trace"  # of the browser, where more is to be seen


def order(finding: Finding) -> tuple[int, int, float]:
    """A sort key: what threatens the run first, then by time saved."""
    return CLASSES.index(finding.class_), -finding.saves_ns_per_step, -finding.share
