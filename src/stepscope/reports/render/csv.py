"""The tables of a report as CSV, with the names and units of the JSON form."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator
from typing import Any

import msgspec

from stepscope.reports.model.report import Report
from stepscope.reports.tables.table import Table
from stepscope.reports.tables.tables import ORDER, tables_of
from stepscope.safe import safe_cell


def csv_tables(
    report: Report, sections: Collection[str] | None = None, *, raw: bool = False
) -> Iterator[tuple[str, str]]:
    """Each table's name and text; names that a spreadsheet would run as formulas are made harmless unless `raw`."""
    for section in ORDER:
        if sections is None or section in sections:
            for table in tables_of(report, section):
                yield table.name, as_csv(table, raw=raw)


def as_csv(table: Table, *, raw: bool = False) -> str:
    """The table with exact figures; lists are JSON, what is not known is empty."""
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(column.key for column in table.columns)
    for row in table.rows:
        writer.writerow(_plain(row.get(column.key), raw) for column in table.columns)
    return target.getvalue()


def _plain(value: Any, raw: bool) -> Any:
    if isinstance(value, str):
        return value if raw else safe_cell(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return msgspec.json.encode(value).decode() if isinstance(value, list | dict) else value
