"""Rows by their event."""

from __future__ import annotations

import polars as pl

from stepscope.native.order import NONE
from stepscope.trace.lookup import (
    are_named,
    by_name,
    distinct,
    events_named,
    names_of,
    parents_of,
    rows_by_event,
)
from stepscope.trace.schema import Text


def test_the_first_row_of_an_event() -> None:
    event = pl.Series([3, None, 1, 3], dtype=pl.UInt32)
    assert rows_by_event(event, 5).to_list() == [None, 2, None, 0, None]


def test_an_empty_table() -> None:
    assert rows_by_event(pl.Series([], dtype=pl.UInt32), 2).to_list() == [None, None]


def test_distinct_names_in_the_order_they_are_met() -> None:
    names = pl.Series("name", ["b", None, "a", "b", "c", "a"], dtype=Text)
    assert distinct(names).to_list() == ["b", "a", "c"]
    assert distinct(names).dtype == Text
    assert distinct(pl.Series("name", [None, None], dtype=Text)).to_list() == []
    assert distinct(pl.Series("name", [], dtype=Text)).to_list() == []


def test_values_by_name() -> None:
    names = pl.Series("name", ["b", None, "a", "b", "unknown"], dtype=Text)
    known, values = pl.Series(["a", "b", "absent"], dtype=Text), pl.Series([1, None, 3], dtype=pl.Int32)
    assert by_name(names, known, values).to_list() == [None, None, 1, None, None]
    assert by_name(names, known.clear(), values.clear()).to_list() == [None] * 5
    assert by_name(names.clear(), known, values).dtype == pl.Int32


def test_names_are_looked_at_once_each() -> None:
    seen: list[str] = []

    def matches(names: pl.Series) -> pl.Series:
        seen.extend(names)
        return names.str.starts_with("a")

    names = pl.Series(["ab", "b", None, "ab", "ac"], dtype=Text)
    assert are_named(names, matches).to_list() == [True, False, False, True, True]
    assert seen == ["ab", "b", "ac"]
    assert are_named(names.clear(), matches).to_list() == []


def test_rows_of_events_without_and_with_nulls() -> None:
    assert rows_by_event(pl.Series([2, 0, 2], dtype=pl.UInt32), 4).to_list() == [1, None, 0, None]
    assert rows_by_event(pl.Series([None, 0, 2], dtype=pl.UInt32), 3).to_list() == [1, None, 2]


def test_names_and_parents_of_events() -> None:
    names = pl.Series("name", ["b", None, "ab", "b"], dtype=Text)
    events = pl.DataFrame({"name": names, "parent": pl.Series([None, 0, 1, None], dtype=pl.UInt32)})
    assert names_of(events).to_list() == ["b", "ab"]
    assert names_of(events) is names_of(events)
    assert parents_of(events).tolist() == [NONE, 0, 1, NONE]
    assert events_named(events, lambda known: known.str.starts_with("a")).to_list() == [
        False,
        False,
        True,
        False,
    ]
