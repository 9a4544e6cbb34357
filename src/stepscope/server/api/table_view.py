"""A table as the page sees it: some of its rows in some order, with what each column holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.profiles.rows import as_texts, csv_header, csv_rows
from stepscope.reports.tables.table import Column, Table
from stepscope.server.api.table_filters import keeps
from stepscope.server.http.request import BadRequest
from stepscope.trace.frames import take_largest, take_smallest

ROWS_PER_PIECE = 1 << 14
LONGEST_CELL = 20_000
_UNITS = {"ns": "ns", "bytes": "bytes", "share": "share", "flops": "FLOPs", "rate": "GB/s"}
_LARGEST_SAFE = 2**53  # JavaScript's numbers are exact up to here


@dataclass(frozen=True)
class View:
    """A frame and its columns."""

    frame: pl.DataFrame
    columns: tuple[Column, ...]

    def about(self) -> list[dict[str, Any]]:
        """What the page learns about each column."""
        return [
            {
                "name": column.key,
                "title": column.title,
                "unit": _UNITS.get(column.kind, ""),
                "kind": column.kind,
                "numeric": column.is_numeric,
                "minor": column.minor,
            }
            for column in self.columns
        ]

    def order(self, filtered: str, sort: str, descending: bool) -> pl.Series | None:
        """The numbers of the rows that match, in the order asked for; None for all as they are."""
        mask = keeps(self.frame, filtered)
        rows = None if mask is None else mask.arg_true().cast(pl.UInt32)
        if not sort or not self.frame.columns:  # a table without rows may have no columns either
            return rows
        if sort not in self.frame.columns:
            fix = f"The columns are {', '.join(self.frame.columns)}."
            raise BadRequest(f"There is no column {sort[:60]!r} to sort by.", where="parameter sort", fix=fix)
        values = self.frame[sort]
        if isinstance(values.dtype, pl.List | pl.Array | pl.Struct | pl.Binary):
            raise BadRequest(f"{sort} cannot be sorted by.", where="parameter sort")
        if rows is not None:
            values = values.gather(rows)
        if isinstance(values.dtype, pl.Categorical | pl.Enum):
            values = _alphabetical(values)
        places = values.arg_sort(descending=descending, nulls_last=True).cast(pl.UInt32)
        ordered: pl.Series = places if rows is None else rows.gather(places)
        return ordered

    def page(self, order: pl.Series | None, offset: int, limit: int) -> list[tuple[Any, ...]]:
        """Rows for JSON."""
        found = self.frame.slice(offset, limit) if order is None else self.frame[order.slice(offset, limit)]
        return _for_json(found).rows()

    def csv(self, order: pl.Series | None, *, raw: bool = False) -> Iterator[bytes]:
        """All rows, piece by piece; text that a spreadsheet would run is made harmless unless `raw`."""
        total = len(self.frame) if order is None else len(order)
        yield csv_header(self.frame, raw=raw).encode()
        for first in range(0, total, ROWS_PER_PIECE):
            rows = (
                self.frame.slice(first, ROWS_PER_PIECE)
                if order is None
                else self.frame[order.slice(first, ROWS_PER_PIECE)]
            )
            yield csv_rows(rows, raw=raw).encode()


def of_report(table: Table) -> View:
    """A table of the report."""
    data = {column.key: [row.get(column.key) for row in table.rows] for column in table.columns}
    return View(pl.DataFrame(data, strict=False), table.columns)


def of_trace(frame: pl.DataFrame) -> View:
    """A table of the trace itself."""
    columns = tuple(Column(name, name, _kind(name, dtype)) for name, dtype in frame.schema.items())  # type: ignore[arg-type]
    return View(frame, columns)


def nothing() -> View:
    """A table without rows."""
    return View(pl.DataFrame(), ())


def _kind(name: str, dtype: pl.DataType) -> str:
    if isinstance(dtype, pl.Array):
        return "extent"
    if not dtype.is_numeric():
        return "name" if name == "name" else "text"
    if name.endswith("_ns"):
        return "ns"
    return (
        "bytes"
        if name in ("bytes", "shared_bytes", "requested", "total_allocated", "total_reserved")
        else "number"
    )


def _alphabetical(values: pl.Series) -> pl.Series:
    """The place of each name in the alphabet: sorting numbers beats sorting texts."""
    known = values.unique().drop_nulls()
    texts = known.cast(pl.String)
    places = pl.DataFrame({"name": known, "place": texts.rank("dense")})
    return (
        values.rename("name").to_frame().join(places, on="name", how="left", maintain_order="left")["place"]
    )


def _for_json(frame: pl.DataFrame) -> pl.DataFrame:
    """Without bytes and numbers that JavaScript cannot hold, and without cells of megabytes."""
    nested = {name for name, dtype in frame.schema.items() if isinstance(dtype, pl.List | pl.Array)}
    plain = as_texts(frame.drop(nested)) if len(frame.columns) > len(nested) else frame.drop(nested)
    plain = plain.with_columns(frame[name] for name in nested).select(frame.columns)
    return plain.with_columns(_cell(plain[name]) for name in plain.columns)


def _cell(values: pl.Series) -> pl.Series:
    if values.dtype in (pl.Int64, pl.UInt64) and len(values):
        top = max(take_largest(values), -take_smallest(values))
        return values.cast(pl.String) if top > _LARGEST_SAFE else values
    if isinstance(values.dtype, pl.Categorical | pl.Enum):
        values = values.cast(pl.String)
    if isinstance(values.dtype, pl.String):
        return values.str.slice(0, LONGEST_CELL)
    return values
