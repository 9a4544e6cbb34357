"""Defects of a capture, counted while it is read: each kind of defect is one problem, told once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import polars as pl

from stepscope.safe import readable
from stepscope.trace.schema import TABLES

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class Problem:
    """A defect of the capture itself: what, how often, and what to do. `detail` may say `{count}`."""

    code: str
    title: str
    detail: str
    fix: str = ""
    severity: Severity = "warning"
    count: int = 1


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
        """Errors first, then warnings, then remarks."""
        order = {"error": 0, "warning": 1, "info": 2}
        found = [problem for problem in self._found.values() if problem.count]
        return sorted(found, key=lambda problem: order[problem.severity])

    def frame(self) -> pl.DataFrame:
        """The `problems` table."""
        rows = [
            {
                "code": p.code,
                "severity": p.severity,
                "title": p.title,
                "detail": readable(p.detail.replace("{count}", f"{p.count:,}")),
                "fix": readable(p.fix),
                "count": p.count,
            }
            for p in self.all()
        ]
        return pl.DataFrame(rows, schema=TABLES["problems"])
