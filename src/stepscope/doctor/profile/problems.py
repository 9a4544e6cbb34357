"""The report's problems as checks: one for each code that reading and analysing a profile can report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import get_args

from stepscope.doctor.check import Check, Checks, Quote, Sign, always
from stepscope.doctor.profile.subject import Examined, needs_profile
from stepscope.problems import file, hangs, ranks, recording
from stepscope.problems.catalogue import CATALOGUE
from stepscope.problems.entry import Severity, Words
from stepscope.reports.model.report import Problem

# Also reported for folders without a profile.
_OF_FOLDERS = ("leftover-files", "never-stopped")
KNOWN = tuple(entry.code for module in (recording, file, ranks, hangs) for entry in module.ENTRIES)


def words_of(problem: Problem) -> Words:
    """The words of the report; a severity that a newer version wrote counts as a warning."""
    severities: dict[str, Severity] = {name: name for name in get_args(Severity)}
    return Words(severities.get(problem.severity, "warning"), problem.title, problem.cause, problem.fix)


def _reported(code: str) -> Callable[[Examined], Iterator[Sign]]:
    """A check that looks for its code among the report's problems."""

    def look(subject: Examined) -> Iterator[Sign]:
        for problem in subject.problems:
            if problem.code == code:
                rank = f" On rank {problem.rank}." if problem.rank is not None else ""
                yield Quote(f"{problem.detail or problem.title}{rank}", words_of(problem))

    return look


CHECKS: Checks[Examined] = Checks(
    "profile",
    [
        Check(CATALOGUE[code], "profile", _reported(code), always if code in _OF_FOLDERS else needs_profile)
        for code in KNOWN
    ],
)
