"""Rows found by a number: events and names are numbered, so a lookup is a gather and needs no join."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from stepscope.native import order
from stepscope.trace.columns import buffer, repeated, rows_or_null, series
from stepscope.trace.frames import filled, kept_with_frame, take, take_largest
from stepscope.trace.judged_texts import contains


def rows_by_event(event: pl.Series, count: int) -> pl.Series:
    """For each of `count` events its row in the table with this column, the first of several; null where there is none."""
    if event.null_count() == len(event):
        return repeated(None, count, pl.UInt32, "row")
    if event.null_count():
        rows = pl.DataFrame({"event": event}).with_row_index("row").drop_nulls().reverse()
        return repeated(None, count, pl.UInt32, "row").scatter(rows["event"], rows["row"])
    return rows_or_null("row", order.first_of_each(buffer(event), count))


def distinct(names: pl.Series) -> pl.Series:
    """The different values of a column of names, without null, in the order they are met."""
    known = names.drop_nulls() if names.null_count() else names
    codes = known.to_physical()
    if codes.is_empty():
        return names.clear()
    rows = order.first_rows(buffer(codes), take_largest(codes) + 1)
    return take(known, series("rows", rows, pl.UInt32))


@kept_with_frame
def names_of(events: pl.DataFrame) -> pl.Series:
    """The different names of the events, as `distinct` gives them."""
    return distinct(events["name"])


@kept_with_frame
def parents_of(events: pl.DataFrame) -> memoryview:
    """The parent of each event for the native loops, NONE where it has none."""
    return buffer(events["parent"].fill_null(order.NONE))


def events_named(events: pl.DataFrame, matches: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """For each of the events whether the text of its name matches, each text looked at once."""
    return _among(events["name"], names_of(events), matches)


def is_named(events: pl.DataFrame, pattern: str) -> pl.Series:
    """For each of the events whether its name contains the pattern."""
    return events_named(events, lambda names: contains(names, pattern))


def are_named(names: pl.Series, matches: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """For each of the names whether its text matches, each text looked at once; no name matches nothing."""
    return _among(names, distinct(names), matches)


def _among(names: pl.Series, known: pl.Series, matches: Callable[[pl.Series], pl.Series]) -> pl.Series:
    found = known.filter(matches(known.cast(pl.String)))
    if found.is_empty():
        return repeated(False, len(names), pl.Boolean)
    return filled(names.is_in(found.implode()))


def by_name(names: pl.Series, known: pl.Series, values: pl.Series) -> pl.Series:
    """For each of the names the value that belongs to it, null where it is not among the known ones."""
    return by_number(names.to_physical(), known.to_physical(), values)


def by_number(numbers: pl.Series, known: pl.Series, values: pl.Series) -> pl.Series:
    """For each of the numbers, none of them large, the value that belongs to it, null where it is not known."""
    if known.is_empty() or numbers.null_count() == len(numbers):
        return repeated(None, len(numbers), values.dtype)
    size = max(take_largest(numbers), take_largest(known)) + 1
    place = repeated(None, size, pl.UInt32)
    place = place.scatter(known, pl.int_range(len(known), dtype=pl.UInt32, eager=True))
    return take(take(values, place), numbers)
