"""A diff in a terminal: the verdict, the lines that explain it, then tables."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from stepscope.diffs.data.model import Diff, FindingChange
from stepscope.diffs.render.cells import (
    HEAD,
    SURE,
    Listing,
    about,
    cells,
    finding_words,
    line_figures,
    listings,
    title_of,
    why_title,
)
from stepscope.reports.render.terminal_sections import cut, heading, wrapped
from stepscope.reports.render.text_grid import lines
from stepscope.safe import safe

WIDTH = 110
ROWS = 10


def as_text(found: Diff, *, width: int = WIDTH, limit: int = ROWS) -> str:
    """Without colours."""
    return "".join(f"{line.plain.rstrip()}\n" for line in diff_lines(found, width, limit=limit))


def diff_lines(found: Diff, width: int, *, limit: int = ROWS) -> Iterator[Text]:
    """What is printed, line by line."""
    for letter, run in (("A", found.a), ("B", found.b)):
        yield Text.assemble(
            (f"{letter}  ", "bold"), (safe(run.name or run.path), "bold"), f"  {safe(about(run))}"
        )
    yield Text()
    yield from (Text(line.plain, "bold") for line in wrapped(found.verdict, width, ""))
    yield from _remarks(found, width)
    yield from _why(found, width)
    yield from _findings("findings that B has and A has not", found.gained, "red", width)
    yield from _findings("findings that B no longer has", found.lost, "green", width)
    yield from _findings("findings of both that grew or shrank", found.kept, "", width)
    for listing in listings(found, limit):
        yield from _table(listing, width)
    yield from _legend(found)


def _remarks(found: Diff, width: int) -> Iterator[Text]:
    if found.not_comparable:
        yield Text()
        for remark in found.not_comparable:
            yield from (Text(line.plain, "yellow") for line in wrapped(remark, width, "  ", "! "))


def _why(found: Diff, width: int) -> Iterator[Text]:
    if not found.lines:
        return
    yield from heading(why_title(found))
    rows = []
    for number, line in enumerate(found.lines, 1):
        figure, of_change = line_figures(line)
        style = "red" if line.difference > 0 else "green"
        rows.append(
            [
                Text(f"{number}."),
                Text(safe(line.title)),
                Text(figure, style),
                Text(of_change),
                Text(safe(line.detail), "dim"),
            ]
        )
    flexible = [False, True, False, False, True]
    yield from lines(rows, [True, False, True, True, False], flexible, width, keep_ends=1, remark=4)


def _findings(title: str, changes: list[FindingChange], style: str, width: int) -> Iterator[Text]:
    kept = [change for change in changes if change.significant]
    if kept:
        yield from heading(title)
        for change in kept:
            yield from (Text(line.plain, style) for line in wrapped(finding_words(change), width, "  ", "· "))


def _table(listing: Listing, width: int) -> Iterator[Text]:
    if not listing.rows:
        return
    yield from heading(listing.title)
    rows = [[Text("")] + [Text(title, "dim") for title in HEAD]]
    for row in listing.rows:
        figures = cells(row)
        style = ("red" if row.difference > 0 else "green") if row.significant else ""
        rows.append(
            [
                Text(SURE if row.significant else " ", style),
                Text(safe(title_of(row, listing.name))),
                *(Text(cell, style if place == 2 else "") for place, cell in enumerate(figures)),
            ]
        )
    yield from lines(rows, [False, False, *[True] * 5], [False, True, *[False] * 5], width, keep_ends=1)
    yield from cut(listing.total, len(listing.rows), listing.title)


def _legend(found: Diff) -> Iterator[Text]:
    yield Text()
    yield Text(
        f"{SURE} more than chance. Times are per step and rank; ± is what chance makes of it in 95 of 100 cases.",
        "dim",
    )
