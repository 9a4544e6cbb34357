"""The report in a terminal: what is wrong with the capture, where the step goes, what to change, then tables."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from rich.text import Text

from stepscope.names import short_name
from stepscope.reports.model.report import Report
from stepscope.reports.render.terminal_sections import ASKED_FOR, IN_WORDS, cut, heading, wrapped
from stepscope.reports.render.text_grid import GAP, bar, lines
from stepscope.reports.tables.table import Column, Table
from stepscope.reports.tables.tables import ORDER, TITLES, UNKNOWN_PRECISION, tables_of
from stepscope.reports.wording.facts import VERDICT, Fact, facts_of, is_sentence
from stepscope.reports.wording.headline import headline
from stepscope.reports.wording.sentence import opening
from stepscope.reports.wording.values import shown
from stepscope.safe import safe

WIDTH = 110
ROWS = 10
_BAR = 10
_NAME_ROOM = 34


def as_text(
    report: Report, *, width: int = WIDTH, sections: Collection[str] | None = None, limit: int = ROWS
) -> str:
    """The report without colours."""
    found = report_lines(report, width, sections=sections, limit=limit)
    return "".join(f"{line.plain.rstrip()}\n" for line in found)


def report_lines(
    report: Report,
    width: int,
    *,
    sections: Collection[str] | None = None,
    limit: int = ROWS,
    verbose: bool = False,
) -> Iterator[Text]:
    """What is printed, line by line; `verbose` lists each kernel whose precision is unknown."""
    yield Text(safe(report.profile.name or report.profile.path), style="bold")
    yield from wrapped(" · ".join(headline(report)), width, "  ")
    yield from wrapped(opening(report), width, "  ")
    for name in ORDER:
        if sections is not None and name not in sections:
            continue
        if name in IN_WORDS:
            write = ASKED_FOR.get(name, IN_WORDS[name]) if sections is not None else IN_WORDS[name]
            yield from write(report, width, limit)
        # A row per step is for those who ask for it.
        if name not in IN_WORDS or (name == "steps" and sections is not None):
            yield from _section(report, name, width, limit, verbose=verbose or sections is not None)


def _section(report: Report, name: str, width: int, limit: int, *, verbose: bool) -> Iterator[Text]:
    facts = [] if name in IN_WORDS else facts_of(report, name)
    found = [table for table in tables_of(report, name) if verbose or table.name != UNKNOWN_PRECISION]
    tables = [table.head(0 if table.name == UNKNOWN_PRECISION else limit) for table in found]
    if name not in IN_WORDS and (facts or tables):
        yield from heading(TITLES[name].lower())
        yield from _told(facts, width)
    for number, table in enumerate(tables):
        if number:
            yield Text(f"  {table.title}", style="italic")
        yield from drawn(table, width)
        yield from cut(table.total, len(table.rows), table.title)


def _told(facts: list[Fact], width: int) -> Iterator[Text]:
    """Short figures in one go, sentences on lines of their own."""
    figures = [f"{label} {value}" for label, value in facts if not is_sentence(value)]
    yield from wrapped(" · ".join(figures), width, "  ")
    for label, value in facts:
        if is_sentence(value):
            yield from wrapped(value if label == VERDICT else f"{label}: {value}", width, "  ")


def drawn(table: Table, width: int) -> Iterator[Text]:
    """The table as lines: as many columns as there is room for, long texts clipped, a bar if it fits."""
    columns = _fitting(table, width)
    rows = [[Text(column.title, "dim") for column in columns]]
    rows += [[_cell(row.get(column.key), column) for column in columns] for row in table.rows]
    right = [column.is_numeric for column in columns]
    flexible = [column.kind in ("name", "text") for column in columns]
    if table.bar and sum(_width(table, column) for column in columns) + _BAR <= width:
        shares = [0.0, *(row.get(table.bar) or 0.0 for row in table.rows)]
        rows = [
            [*cells, Text(bar(share, _BAR).rstrip(), "blue")]
            for cells, share in zip(rows, shares, strict=True)
        ]
        right, flexible = [*right, False], [*flexible, False]
    names = next((place for place, column in enumerate(columns) if column.kind == "name"), None)
    yield from lines(rows, right, flexible, width, keep_ends=names)


def _cell(value: object, column: Column) -> Text:
    text = shown(value, column.kind)
    return Text(safe(short_name(text) if column.kind == "name" else text))


def _fitting(table: Table, width: int) -> list[Column]:
    """The columns that matter, and of the others as many as fit."""
    known = table.known()
    room = (
        width
        - (_BAR if table.bar else 0)
        - sum(_width(table, column) for column in known if not column.minor)
    )
    kept = []
    for column in known:
        if column.minor:
            room -= _width(table, column)
        if not column.minor or room >= 0:
            kept.append(column)
    return kept


def _width(table: Table, column: Column) -> int:
    longest = max((len(shown(row.get(column.key), column.kind)) for row in table.rows), default=0)
    return max(len(column.title), min(longest, _NAME_ROOM) if not column.is_numeric else longest) + GAP
