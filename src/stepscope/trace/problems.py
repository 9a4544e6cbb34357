"""Defects of a capture, counted while it is read: each kind of defect is one problem, reported once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stepscope.lazy import dataclass
from stepscope.problems.catalogue import CATALOGUE, words
from stepscope.problems.entry import Severity
from stepscope.safe import readable

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Problem:
    """A defect of the capture itself: what, how often, and what to do. `detail` may contain `{count}`.

    `problem` makes one in the words of the catalogue, `quoted` one that a file brings along.
    """

    code: str
    title: str
    detail: str
    fix: str = ""
    severity: Severity = "warning"
    count: int = 1


def problem(code: str, detail: str = "", *, case: str = "", count: int = 1, **facts: str) -> Problem:
    """A problem in the words of the catalogue; `detail` is the evidence, the facts fill the placeholders of title and fix."""
    said = words(code, case, **facts)
    return Problem(code, said.title, detail, said.fix, said.severity, count)


def quoted(written: Problem) -> Problem:
    """A problem that a sidecar or an export brings along.

    A known code gets the words of this version, so that report, doctor and documentation agree. Words that depend on
    facts stay as they were written: the file has the words, not the facts.
    """
    entry = CATALOGUE.get(written.code)
    if entry is None or entry.depends_on_facts:
        return written
    said = entry.words()
    return replace(written, title=said.title, fix=said.fix, severity=said.severity)


class Problems:
    """Collects problems; the same code with the same title is one problem with a larger count.

    One with a count of 0 is none: it only keeps the place of what may still be found.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], Problem] = {}

    def add(self, problem: Problem) -> None:
        """Note the problem, or raise its count. The first one's detail is kept: it says where it began."""
        key = (problem.code, problem.title)
        before = self._found.get(key)
        if before is not None and before.count:
            problem = replace(before, count=before.count + problem.count)
        self._found[key] = problem

    def __len__(self) -> int:
        return len(self.all())

    def all(self) -> list[Problem]:
        """Errors first, then warnings, then notes."""
        order = {"error": 0, "warning": 1, "info": 2}
        found = [problem for problem in self._found.values() if problem.count]
        return sorted(found, key=lambda problem: order[problem.severity])

    def frame(self) -> pl.DataFrame:
        """The `problems` table."""
        import polars as pl  # here: what only looks at folders or shows a kept report does without

        from stepscope.trace.schema import TABLES

        rows = [
            {
                "code": p.code,
                "severity": p.severity,
                "title": readable(p.title),
                "detail": readable(p.detail.replace("{count}", f"{p.count:,}")),
                "fix": readable(p.fix),
                "count": p.count,
            }
            for p in self.all()
        ]
        return pl.DataFrame(rows, schema=TABLES["problems"])
