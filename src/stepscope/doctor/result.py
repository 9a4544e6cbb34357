"""What the doctor found: the content of `stepscope doctor --format json`."""

from __future__ import annotations

import msgspec

SCHEMA = "stepscope.doctor/1"


class Result(msgspec.Struct):
    """A check that did not pass: what is wrong, the evidence, why, and the exact fix."""

    code: str
    group: str
    severity: str
    title: str
    evidence: str
    fix: str
    cause: str = ""

    @property
    def is_failure(self) -> bool:
        """Notes (`info`) are worth knowing and do not count as failures."""
        return self.severity != "info"


class NotLookedAt(msgspec.Struct):
    """A check that did not apply, or that could not be answered."""

    code: str
    group: str
    reason: str


class Diagnosis(msgspec.Struct):
    """The results of all checks: failures first, then notes."""

    subject: str
    results: list[Result]
    passed: list[str]
    not_looked_at: list[NotLookedAt]
    facts: dict[str, str] = {}
    schema: str = SCHEMA

    @property
    def failures(self) -> list[Result]:
        """Results that make the exit code 3."""
        return [result for result in self.results if result.is_failure]

    @property
    def notes(self) -> list[Result]:
        """Results that do not."""
        return [result for result in self.results if not result.is_failure]
