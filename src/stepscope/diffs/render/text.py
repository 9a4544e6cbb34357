"""A diff in a terminal: the verdict, the lines that explain it, then tables."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from stepscope.diffs.data.model import Diff, Row
from stepscope.diffs.render.cells import (
    HEAD,
    LEGEND,
    SIGNIFICANT,
    Listing,
    describe_finding,
    describe_run,
    describe_subject,
    format_cells,
    format_line,
    list_finding_groups,
    list_tables,
    title_lines,
)
from stepscope.registers.policy.diffs import DIFF_TEXT_ROWS, DIFF_TEXT_WIDTH
from stepscope.reports.render.terminal_sections import cut, heading, wrapped
from stepscope.reports.render.text_grid import lines
from stepscope.safe import safe

_WORSE, _BETTER = "red", "green"
STYLES = {True: _WORSE, False: _BETTER, None: ""}


def as_text(diff: Diff, *, width: int = DIFF_TEXT_WIDTH, limit: int = DIFF_TEXT_ROWS) -> str:
    """Without colours."""
    return "".join(f"{line.plain.rstrip()}\n" for line in diff_lines(diff, width, limit=limit))


def diff_lines(diff: Diff, width: int, *, limit: int = DIFF_TEXT_ROWS) -> Iterator[Text]:
    """What is printed, line by line."""
    for letter, run in (("A", diff.a), ("B", diff.b)):
        yield Text.assemble(
            (f"{letter}  ", "bold"), (safe(run.name or run.path), "bold"), f"  {safe(describe_run(run))}"
        )
    yield Text()
    yield from (Text(line.plain, "bold") for line in wrapped(diff.verdict, width, ""))
    yield from _render_caveats(diff, width)
    yield from render_lines(diff, width)
    for group in list_finding_groups(diff):
        yield from heading(group.title)
        for change in group.changes:
            words = wrapped(describe_finding(change), width, "  ", "· ")
            yield from (Text(line.plain, STYLES[group.is_worse]) for line in words)
    for listing in list_tables(diff, limit):
        yield from render_table(listing, width)
    yield Text()
    yield Text(LEGEND, "dim")


def _render_caveats(diff: Diff, width: int) -> Iterator[Text]:
    if diff.not_comparable:
        yield Text()
        for caveat in diff.not_comparable:
            yield from (Text(line.plain, "yellow") for line in wrapped(caveat, width, "  ", "! "))


def render_lines(diff: Diff, width: int) -> Iterator[Text]:
    """What explains the change, the longest first."""
    if not diff.lines:
        return
    yield from heading(title_lines(diff))
    rows = []
    for number, line in enumerate(diff.lines, 1):
        figure, of_change = format_line(line)
        rows.append(
            [
                Text(f"{number}."),
                Text(safe(line.title)),
                Text(figure, _WORSE if line.difference > 0 else _BETTER),
                Text(of_change),
                Text(safe(line.detail), "dim"),
            ]
        )
    flexible = [False, True, False, False, True]
    yield from lines(rows, [True, False, True, True, False], flexible, width, keep_ends=1, remark=4)


def render_table(listing: Listing, width: int) -> Iterator[Text]:
    """The rows of A and B with their noise."""
    yield from heading(listing.title)
    rows = [[Text("")] + [Text(title, "dim") for title in HEAD]]
    rows += [_render_row(row, listing.name) for row in listing.rows]
    yield from lines(rows, [False, False, *[True] * 5], [False, True, *[False] * 5], width, keep_ends=1)
    yield from cut(listing.total, len(listing.rows), listing.title)


def _render_row(row: Row, table: str) -> list[Text]:
    style = (_WORSE if row.difference > 0 else _BETTER) if row.significant else ""
    figures = (Text(cell, style if place == 2 else "") for place, cell in enumerate(format_cells(row)))
    return [
        Text(SIGNIFICANT if row.significant else " ", style),
        Text(safe(describe_subject(row, table))),
        *figures,
    ]
