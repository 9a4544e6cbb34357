"""Rows by their event."""

from __future__ import annotations

import polars as pl

from stepscope.trace.lookup import rows_by_event


def test_the_first_row_of_an_event() -> None:
    event = pl.Series([3, None, 1, 3], dtype=pl.UInt32)
    assert rows_by_event(event, 5).to_list() == [None, 2, None, 0, None]


def test_an_empty_table() -> None:
    assert rows_by_event(pl.Series([], dtype=pl.UInt32), 2).to_list() == [None, None]
