"""Frames with declared schemas, and single numbers out of their columns.

A frame that crosses a function border has its schema declared beside the function that makes it; `conform` holds it to that.
Polars types the result of `max` or `median` as anything that a column may hold; the functions here give plain numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar
from weakref import ref

import polars as pl

_SHORT = 100_000  # rows up to which columns one by one are faster than side by side
Schema = Mapping[str, pl.DataType | type[pl.DataType]]
T = TypeVar("T")


def kept_with_frame(answer: Callable[[pl.DataFrame], T]) -> Callable[[pl.DataFrame], T]:
    """The same function, which computes its answer once for each frame, and forgets it with the frame.

    For what many ask about all events of a trace. Callers must change neither the frame nor what is returned.
    """
    known: dict[int, tuple[Any, T]] = {}

    @wraps(answer)
    def ask(frame: pl.DataFrame) -> T:
        number = id(frame)
        kept = known.get(number)
        if kept is not None and kept[0]() is frame:
            return kept[1]
        found = answer(frame)
        known[number] = ref(frame, lambda _: known.pop(number, None)), found
        return found

    return ask


def conform(frame: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """The frame with exactly these columns, in this order and of these types."""
    columns = [frame[name] for name in schema]
    # Column by column: a query that casts each of them takes a millisecond, most of it to no effect.
    return pl.DataFrame([_of_type(column, schema[column.name]) for column in columns])


def _of_type(column: pl.Series, dtype: pl.DataType | type[pl.DataType]) -> pl.Series:
    return column if column.dtype == dtype else column.cast(dtype)


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


def take(values: pl.Series, at: pl.Series) -> pl.Series:
    """The values at these places, null where the place is: `gather` without its query, which costs more than a short column does."""
    # Polars cannot tell from nulls alone whether other numbers than its own row numbers are negative.
    is_known = at.dtype == pl.UInt32 or at.null_count() < len(at)
    return values[at] if is_known else values.gather(at)


def kept(frame: pl.DataFrame, mask: pl.Series) -> pl.DataFrame:
    """The rows where the mask is true: `filter` without its query, which costs more than a short frame does."""
    if len(frame) > _SHORT:
        return frame.filter(mask)
    return pl.DataFrame([column.filter(mask) for column in frame.get_columns()])


def filled(mask: pl.Series) -> pl.Series:
    """The mask with false for null."""
    return mask.fill_null(False) if mask.null_count() else mask
