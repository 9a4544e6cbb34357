"""Frames are held to their schema, and columns give plain numbers, also where they are empty."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.trace.frames import (
    conform,
    empty,
    kept_with_frame,
    take_largest,
    take_mean,
    take_median,
    take_smallest,
)

SCHEMA = {"name": pl.String, "ns": pl.Int64}


def test_exactly_the_declared_columns() -> None:
    frame = pl.DataFrame({"more": [1], "ns": [2.0], "name": ["a"]})
    found = conform(frame, SCHEMA)
    assert found.schema == SCHEMA
    assert found.rows() == [("a", 2)]
    assert empty(SCHEMA).schema == SCHEMA


def test_a_missing_column_is_an_error() -> None:
    with pytest.raises(pl.exceptions.ColumnNotFoundError):
        conform(pl.DataFrame({"name": ["a"]}), SCHEMA)


def test_plain_numbers() -> None:
    values = pl.Series([3, None, 1, 8], dtype=pl.UInt32)
    assert (take_smallest(values), take_largest(values)) == (1, 8)
    assert (take_median(values), take_mean(values)) == (3.0, 4.0)


@pytest.mark.parametrize("values", [[], [None]])
def test_defaults_where_there_is_none(values: list[None]) -> None:
    column = pl.Series(values, dtype=pl.Int64)
    assert (take_smallest(column), take_largest(column, 7)) == (0, 7)
    assert (take_median(column), take_mean(column, 1.5)) == (0.0, 1.5)


def test_an_answer_is_kept_as_long_as_its_frame() -> None:
    asked: list[int] = []

    @kept_with_frame
    def height(frame: pl.DataFrame) -> int:
        asked.append(frame.height)
        return frame.height

    frame, other = pl.DataFrame({"a": [1, 2]}), pl.DataFrame({"a": [1, 2, 3]})
    assert [height(frame), height(other), height(frame), height(other)] == [2, 3, 2, 3]
    assert asked == [2, 3]
    for count in range(1, 50):  # frames that may have the place in memory of one that is gone
        assert height(pl.DataFrame({"a": [0] * count})) == count
