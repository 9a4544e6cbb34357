"""Tables of the web page: all columns, exact values for sorting, full names on demand."""

from __future__ import annotations

from typing import Any

from stepscope.names import short_name
from stepscope.reports.figures.markup import Markup, tag
from stepscope.reports.tables.table import Column, Table
from stepscope.reports.wording.parts import PARTS, part
from stepscope.reports.wording.values import shown

FILTERED = 10  # rows from which on a table can be filtered
FOLDED = 15  # rows that a long table shows at first
_WORDS = 60


def table_html(table: Table, title: str) -> Markup:
    """The table with its title, a filter where it is long, and a word on what was left out."""
    columns = table.known()
    head = tag(
        "tr",
        [
            tag("th", column.title, class_="n" if column.is_numeric else None, scope="col")
            for column in columns
        ],
    )
    body = [tag("tr", [_cell(row, column, table.bar) for column in columns]) for row in table.rows]
    search = tag("input", type="search", placeholder="filter", aria_label=f"filter {table.title}")
    tools = [
        tag("h3", title.capitalize()) if title else None,
        search if len(table.rows) >= FILTERED else None,
    ]
    return tag(
        "div",
        tag("div", tools, class_="tools" if title else "tools bare") if any(tools) else None,
        tag("div", tag("table", tag("thead", head), tag("tbody", body)), class_="table"),
        _unfold(len(body)) if len(body) > FOLDED + 3 else None,
        _cut(table),
        class_="of folded" if len(body) > FOLDED + 3 else "of",
    )


def _unfold(count: int) -> Markup:
    """For the script, which takes the class `folded` away; without it all rows are there."""
    return tag("button", f"show all {count:,} rows", type="button", class_="unfold", hidden=True)


def _cut(table: Table) -> Markup | None:
    if not table.is_cut:
        return None
    return tag(
        "p",
        f"{len(table.rows):,} of {table.total:,} rows; ",
        tag("code", "--limit 0"),
        " gives all.",
        class_="cut",
    )


def _cell(row: dict[str, Any], column: Column, bar: str | None) -> Markup:
    value = row.get(column.key)
    words = shown(value, column.kind)
    if value is None:
        return tag("td", words, class_="none n" if column.is_numeric else "none", data_v="")
    if column.key == "part" and value in PARTS:
        return tag("td", tag("i", class_=f"swatch p-{value}"), part(value).title, title=part(value).meaning)
    if column.key == bar:
        width = f"width:{100 * min(1.0, max(0.0, value)):.1f}%"
        return tag("td", tag("i", style=width), words, class_="n share", data_v=repr(value))
    if column.is_numeric:
        return tag("td", words, class_="n", data_v=repr(value))
    if column.kind == "name":
        brief = short_name(words)
        return tag("td", brief, class_="name", title=words if brief != words or len(words) > _WORDS else None)
    return tag("td", words, class_="words" if len(words) > _WORDS else None)
