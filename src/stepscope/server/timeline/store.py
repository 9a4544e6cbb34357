"""Slices ready to be shown: in rows, with the names that they bear. Names are numbered the same after a restart."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import polars as pl

from stepscope.native.view import lod
from stepscope.native.view.lod import Rows
from stepscope.native.view.rows import arrange
from stepscope.server.timeline import styles
from stepscope.trace.columns import buffer, series
from stepscope.trace.frames import take_largest
from stepscope.trace.lookup import distinct
from stepscope.trace.trace import Trace

LABEL_BITS = 24  # of a label are the number of its name, the others its style
MOST_NAMES = 1 << LABEL_BITS
NAMELESS = "(without a name)"
_BYTES_OF_ROW = 120


@dataclass(frozen=True)
class Row:
    """One line of the picture: a depth of a track, or a lane of it where slices overlap."""

    track: int
    depth: int
    events: int
    overlaps: bool


@dataclass(frozen=True)
class Store:
    """`labels` gives for the numbers of slices what they are called and how they look."""

    rows: list[Row]
    native: Rows = field(repr=False)
    order: array[int] = field(repr=False)
    first: array[int] = field(repr=False)
    names: pl.Series = field(repr=False)
    labels: Callable[[array[int]], array[int]] = field(repr=False)
    held: int = 0  # bytes that only the native rows and the labels hold

    @property
    def nbytes(self) -> int:
        """What it takes in memory beside the tables that it was made of."""
        columns = sum(len(each) * each.itemsize for each in (self.order, self.first))
        return columns + int(self.names.estimated_size()) + self.held + _BYTES_OF_ROW * len(self.rows)

    def row_of(self, event: int, track: int, depth: int, start: int) -> int | None:
        """The row that shows an event."""
        for number, row in enumerate(self.rows):
            if row.track == track and row.depth == depth and self.place(event, number, start) is not None:
                return number
        return None

    def place(self, event: int, row: int, start: int) -> int | None:
        """The place of the event in the order, if it is in that row."""
        end = self.first[row + 1]
        for at in range(self.native.place(row, start), end):
            if self.order[at] == event:
                return at
            if self.order[at] > event:
                break
        return None


def store_of(trace: Trace) -> Store:
    """All events of a trace."""
    events = trace.events
    names, number_of, style_of = _names(events["name"])
    coded = [_codes(events[name]) for name in ("name", "kind", "role")]
    codes = [buffer(each) for each in coded]
    filled = sum(
        int(each.estimated_size()) for each in coded if events[each.name].null_count()
    )  # else they are the tables'

    def labels(ids: array[int]) -> array[int]:
        name, kind, role = codes
        return lod.labels(ids, name, kind, role, buffer(number_of), style_of, styles.OF_KIND, styles.OF_ROLE)

    columns = [buffer(events[name]) for name in ("track", "depth", "start_ns", "dur_ns")]
    held = filled + int(number_of.estimated_size()) + len(style_of)
    return _store(arrange(*columns), columns[2], columns[3], names, labels, held)


def store_of_spans(spans: pl.DataFrame, names: list[str]) -> Store:
    """Spans (row, start_ns, dur_ns, name, style) that no trace has, by row and start: `name` is a place in `names`."""
    depth = pl.repeat(0, len(spans), dtype=pl.UInt16, eager=True)
    start, dur = (buffer(spans[name].cast(pl.Int64).rechunk()) for name in ("start_ns", "dur_ns"))
    arranged = arrange(buffer(spans["row"].cast(pl.UInt32)), buffer(depth), start, dur)
    label = spans["style"].cast(pl.UInt32) * MOST_NAMES + spans["name"].cast(pl.UInt32)

    def labels(ids: array[int]) -> array[int]:
        return array("I", label.gather(series("ids", ids, pl.UInt32)))

    held = int(label.estimated_size()) + 16 * len(spans)
    return _store(arranged, start, dur, pl.Series(names, dtype=pl.String), labels, held)


def _store(
    arranged: tuple[array[int], array[int], list[tuple[int, int, int, bool]]],
    start: Any,
    dur: Any,
    names: pl.Series,
    labels: Callable[[array[int]], array[int]],
    held: int,
) -> Store:
    order, longest, rows = arranged
    first = array("I", accumulate((row[2] for row in rows), initial=0))
    native = Rows(start, dur, order, longest, first, bytes(row[3] for row in rows))
    held += len(longest) * longest.itemsize + len(rows)
    return Store([Row(*row) for row in rows], native, order, first, names, labels, held)


def _codes(column: pl.Series) -> pl.Series:
    """The codes of a column of names; where there is none, one beyond all others."""
    codes = column.to_physical()
    return codes.fill_null(0xFFFFFFFF if codes.dtype == pl.UInt32 else 0xFF)


def _names(column: pl.Series) -> tuple[pl.Series, pl.Series, bytes]:
    """The names in the order of the alphabet, the number of each by its code, and the style of each by its number."""
    known = distinct(column)
    table = pl.DataFrame({"code": known.to_physical(), "name": known.cast(pl.String)}).sort("name")
    table = table.head(MOST_NAMES - 1)
    names = pl.concat([pl.Series([NAMELESS]), table["name"]]).alias("name")
    size = take_largest(table["code"]) + 1
    number_of = pl.repeat(0, size, dtype=pl.UInt32, eager=True)
    if len(table):
        number_of = number_of.scatter(
            table["code"], pl.int_range(1, len(table) + 1, dtype=pl.UInt32, eager=True)
        )
    return names, number_of, bytes(styles.of_name(name) for name in names)
