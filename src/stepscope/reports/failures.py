"""What went wrong while a report was computed: the fault of one section, rule or check must not cost the others."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from stepscope.analysis.findings.faults import PROMISES
from stepscope.errors import first_line, is_fault
from stepscope.profiles.ranks import spans
from stepscope.reports.model.report import Problem
from stepscope.reports.problems import reported
from stepscope.reports.sections.section import Section
from stepscope.trace.problems import problem

if TYPE_CHECKING:
    from stepscope.reports.sections.findings import OfRank

RAISE = "STEPSCOPE_RAISE"  # in the environment: tracebacks instead of problems
_RULES = "rules"  # the case of the problem in which findings were not looked for

T = TypeVar("T")


class Failures:
    """The faults, each with all that it cost and the ranks that have it."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], tuple[dict[str, None], list[int]]] = {}

    def caught(self, section: Section, rank: int | None, ask: Callable[..., T], *arguments: Any) -> list[T]:
        """The answer, or nothing and a problem."""
        try:
            return [ask(*arguments)]
        except BaseException as error:
            if not is_fault(error) or os.environ.get(RAISE):
                raise
            self.add(first_line(error), section.name, rank)
            return []

    def add(self, line: str, section: str, rank: int | None, case: str = "") -> None:
        """One more of these faults."""
        sections, ranks = self._found.setdefault((case, line), ({}, []))
        sections[section] = None
        if rank is not None and rank not in ranks:
            ranks.append(rank)

    def add_rules(self, ranks: Iterable[OfRank]) -> None:
        """The faults of rules on these ranks."""
        for each in ranks:
            for fault in each.faults:
                self.add(fault.line, fault.what, each.rank, "" if fault.what == PROMISES else _RULES)

    def lines(self) -> list[tuple[str, str]]:
        """Fault and section, of a single rank."""
        return [(line, section) for (_, line), (sections, _) in self._found.items() for section in sections]

    def problems(self, all_ranks: int) -> list[Problem]:
        """One for each fault, however many sections and ranks it cost."""
        return [
            _failed(line, list(sections), ranks if all_ranks > 1 else [], case)
            for (case, line), (sections, ranks) in self._found.items()
        ]


def _failed(line: str, sections: list[str], ranks: list[int], case: str) -> Problem:
    where = f" On ranks {spans(ranks)}." if len(ranks) > 1 else ""
    named = ", ".join(sections)
    count = len(sections) if case == _RULES else max(1, len(ranks))
    return reported(
        problem("analysis-failed", line + where, case=case, count=count, sections=named, codes=named),
        rank=ranks[0] if len(ranks) == 1 else None,
    )
