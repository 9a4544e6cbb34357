"""Small helpers for tables that several sections put together."""

from __future__ import annotations

import polars as pl

# Of Python's built-in methods; it is another one in each process.
_ADDRESS = r" at 0x[0-9a-f]+"


def without_address(name: str) -> pl.Expr:
    """The names in a column, the same in every process."""
    return pl.col(name).cast(pl.String).str.replace(_ADDRESS, "")


def capped(frame: pl.DataFrame, limit: int) -> pl.DataFrame:
    """The first rows; 0 for all."""
    return frame.head(limit) if limit else frame


def sum_or_null(name: str) -> pl.Expr:
    """The sum of what is known; null where nothing is."""
    return pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(name)


def only_value(name: str) -> pl.Expr:
    """The value that all rows share, or null."""
    return pl.when(pl.col(name).n_unique() == 1).then(pl.col(name).first()).alias(name)
