"""Rows of a table found by their event: events are numbered, so a lookup is a gather and needs no join."""

from __future__ import annotations

import polars as pl


def rows_by_event(event: pl.Series, count: int) -> pl.Series:
    """For each of `count` events its row in the table with this column, the first of several; null where there is none."""
    rows = pl.DataFrame({"event": event}).with_row_index("row").drop_nulls().reverse()
    none = pl.repeat(None, count, dtype=pl.UInt32, eager=True)
    return none.scatter(rows["event"], rows["row"]).alias("row") if len(rows) else none.alias("row")
