"""A finding: the one type from a rule to the report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from stepscope.analysis.host.place import Place
from stepscope.registers.policy.ranking import STEPS_BEFORE_FULL, WORTH_MORE_THAN_A_WARNING

# What threatens the run first; within a class findings sort by the saving that can be expected.
CLASSES = ("capture", "memory", "time", "advice")
# The title where the host waits for a runtime that goes on after the device: the part of the account would blame the host.
LATE_RUNTIME = "The runtime goes on long after the device is done"


class Interval(msgspec.Struct, frozen=True):
    """A figure that is known within bounds: it should hold the truth in at least eight of ten cases."""

    low: float = 1.0
    mid: float = 1.0
    high: float = 1.0

    def ordered(self) -> Interval:
        """The same where both ends hold the middle; else they are moved to it."""
        return Interval(min(self.low, self.mid), self.mid, max(self.mid, self.high))


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


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """In their order; a warning that has time comes behind what makes the job faster."""
    found = sorted(findings, key=order)
    patient = [each for each in found if _has_time(each)]
    others = [each for each in found if not _has_time(each)]
    faster = [place for place, each in enumerate(others, 1) if each.speedup.mid >= WORTH_MORE_THAN_A_WARNING]
    place = (
        faster[-1] if faster else sum(order(each) < order(patient[0]) for each in others) if patient else 0
    )
    return [*others[:place], *patient, *others[place:]]


def _has_time(finding: Finding) -> bool:
    """Memory that grows, but fills the device only after many more steps."""
    left = finding.evidence.get("steps_left", 0)
    return finding.class_ == "memory" and (left is None or left > STEPS_BEFORE_FULL)


def order(finding: Finding) -> tuple[int, float, float]:
    """A sort key: what threatens the run first, then by the expected saving."""
    return CLASSES.index(finding.class_), -finding.expected_ns, -finding.share
