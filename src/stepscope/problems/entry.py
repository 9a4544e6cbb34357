"""An entry of the catalogue: the words for one code, with named placeholders for the facts of a case.

The report, the doctor, the capture and the documentation take their words from here, so they cannot differ. What a reader or a check
adds is the evidence: the figures of the case at hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Severity = Literal["error", "warning", "info"]
# What the documentation shows for a fact that an entry gives no example of.
EXAMPLES: Mapping[str, str] = {"python": "python", "name": "prof"}


@dataclass(frozen=True)
class Case:
    """A variant of an entry that needs other words; what it leaves out is the entry's."""

    title: str = ""
    fix: str = ""
    severity: Severity | None = None


@dataclass(frozen=True)
class Words:
    """What people read of a problem, with the facts filled in."""

    severity: Severity
    title: str
    cause: str
    fix: str


@dataclass(frozen=True)
class Entry:
    """`title` names the problem, `cause` says why it happens and what follows, `fix` what to do.

    Title and fix may have placeholders such as `{python}`; the cause has none, so that the code alone determines it.
    """

    code: str
    severity: Severity
    title: str
    cause: str
    fix: str
    cases: Mapping[str, Case] = field(default_factory=dict)
    example: Mapping[str, str] = field(default_factory=dict)

    @property
    def depends_on_facts(self) -> bool:
        """Whether the code alone does not determine title, fix and severity."""
        return bool(self.cases) or "{" in (self.title + self.fix).replace("{{", "")

    def words(self, case: str = "", facts: Mapping[str, str] | None = None) -> Words:
        """The words for a case. A fact that is missing raises KeyError: the tests provoke every code."""
        chosen = self.cases[case] if case else Case()
        known = facts or {}
        return Words(
            chosen.severity or self.severity,
            (chosen.title or self.title).format_map(known),
            self.cause,
            (chosen.fix or self.fix).format_map(known),
        )

    def examples(self) -> list[Words]:
        """The words of the entry and of its cases, with example facts: what the documentation shows."""
        facts = {**EXAMPLES, **self.example}
        return [self.words(case, facts) for case in ("", *self.cases)]
