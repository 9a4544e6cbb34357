"""Frames with declared schemas, and single numbers out of their columns.

A frame that crosses a function border has its schema declared beside the function that makes it; `conform` holds it to that.
Polars types the result of `max` or `median` as anything that a column may hold; the functions here give plain numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

Schema = Mapping[str, pl.DataType | type[pl.DataType]]


def conform(frame: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """The frame with exactly these columns, in this order and of these types."""
    return frame.select(pl.col(name).cast(dtype) for name, dtype in schema.items())


def empty(schema: Schema) -> pl.DataFrame:
    """A frame of that schema without rows."""
    return pl.DataFrame(schema=dict(schema))


def take_largest(values: pl.Series, default: int = 0) -> int:
    """The largest whole number; the default where there is none."""
    return _as_int(values.max(), default)


def take_smallest(values: pl.Series, default: int = 0) -> int:
    """The smallest whole number; the default where there is none."""
    return _as_int(values.min(), default)


def take_median(values: pl.Series, default: float = 0.0) -> float:
    """The median; the default where there is none."""
    return _as_float(values.median(), default)


def take_mean(values: pl.Series, default: float = 0.0) -> float:
    """The mean; the default where there is none."""
    return _as_float(values.mean(), default)


def _as_int(value: object, default: int) -> int:
    return int(value) if isinstance(value, int | float) else default


def _as_float(value: object, default: float) -> float:
    return float(value) if isinstance(value, int | float) else default
