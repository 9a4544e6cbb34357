"""A renderer: turns a report into the text of one file. It formats; it computes nothing."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from stepscope.lazy import dataclass
from stepscope.reports.model.report import Report

USUAL_ROWS = 100


class Render(Protocol):
    """`sections` are the names of those to show, None for all; `limit` the most rows of a table, 0 for all."""

    def __call__(self, report: Report, *, sections: Collection[str] | None, limit: int) -> str:
        """The text."""


@dataclass(frozen=True)
class Renderer:
    """`--format NAME` chooses it, or `-o FILE` by one of the suffixes; `rows` of a table suit it."""

    name: str
    render: Render
    suffixes: tuple[str, ...] = ()
    rows: int = USUAL_ROWS
