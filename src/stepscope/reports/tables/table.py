"""A table of the report, before anyone draws it: columns that know what they hold, and rows of plain values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from stepscope.lazy import dataclass
from stepscope.reports.wording.values import NUMERIC, Kind


@dataclass(frozen=True)
class Column:
    """`key` is the field of the row and the column of a CSV file.

    A `minor` column is left out where room is short, an `exact` one is only for programs.
    """

    key: str
    title: str
    kind: Kind = "text"
    minor: bool = False
    exact: bool = False

    @property
    def is_numeric(self) -> bool:
        """Whether it is aligned right."""
        return self.kind in NUMERIC


@dataclass(frozen=True)
class Table:
    """`total`: how many rows there are, shown or not. `bar` is the column whose share is drawn."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: Sequence[dict[str, Any]]
    total: int
    note: str = ""
    bar: str | None = None

    @property
    def is_cut(self) -> bool:
        """Whether rows were left out."""
        return self.total > len(self.rows)

    def known(self) -> tuple[Column, ...]:
        """The columns for people in which anything is known."""
        readable = (column for column in self.columns if not column.exact)
        return tuple(
            column for column in readable if any(row.get(column.key) is not None for row in self.rows)
        )

    def head(self, limit: int) -> Table:
        """The table with fewer rows; 0 for all."""
        if not limit or len(self.rows) <= limit:
            return self
        return Table(self.name, self.title, self.columns, self.rows[:limit], self.total, self.note, self.bar)


def table(
    name: str,
    title: str,
    columns: Iterable[Column],
    rows: Sequence[msgspec.Struct | dict[str, Any]],
    *,
    total: int | None = None,
    note: str = "",
    bar: str | None = None,
) -> Table:
    """A table over structs or dictionaries."""
    plain = [row if isinstance(row, dict) else msgspec.to_builtins(row) for row in rows]
    return Table(name, title, tuple(columns), plain, len(plain) if total is None else total, note, bar)
