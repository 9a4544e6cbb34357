"""A finding: the one type from a rule to the report."""

from __future__ import annotations

from typing import Any

import msgspec

from stepscope.analysis.host.place import Place

# What threatens the run first; within a class findings sort by the saving that can be expected.
CLASSES = ("capture", "memory", "time", "advice")


class Interval(msgspec.Struct, frozen=True):
    """A figure that is known within bounds: it should hold the truth in at least eight of ten cases."""

    low: float = 1.0
    mid: float = 1.0
    high: float = 1.0


class Finding(msgspec.Struct, kw_only=True):
    """A diagnosed bottleneck: evidence, what to change, and what that would save in the job as it runs unprofiled.

    `share` is of the recorded step, in slices that no other finding owns. `speedup` is of the job after the change, with all
    that goes with it; `left_ns_per_step` is the step that is left. `certainty`: how often a finding of its kind is the cause.
    """

    code: str
    class_: str = msgspec.field(name="class")
    title: str
    detail: str
    evidence: dict[str, Any] = {}
    share: float = 0.0
    saves_ns_per_step: int = 0
    speedup: Interval = Interval()
    left_ns_per_step: Interval | None = None
    certainty: float = 1.0
    where: list[Place] = []
    fix: str = ""
    page: str = "trace"  # of the browser, where more is to be seen

    @property
    def expected_ns(self) -> float:
        """The saving that can be expected: what the change saves, if the finding is the cause."""
        return self.saves_ns_per_step * self.certainty


def order(finding: Finding) -> tuple[int, float, float]:
    """A sort key: what threatens the run first, then by the expected saving."""
    return CLASSES.index(finding.class_), -finding.expected_ns, -finding.share
