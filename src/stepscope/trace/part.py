"""Some of a trace's events as a trace of their own: numbered anew, with what the tables say of them."""

from __future__ import annotations

import polars as pl

from stepscope.trace.columns import repeated
from stepscope.trace.schema import EVENT_REFERENCES
from stepscope.trace.trace import Trace


def part_of(trace: Trace, ids: pl.Series, start: int, end: int) -> Trace:
    """The events with these numbers (ascending), and the counters' samples from start to end.

    Links stay where both ends do; what else refers to an event that is left out refers to none.
    """
    number = new_numbers(len(trace.events), ids)
    events = trace.events[ids].with_columns(
        id=pl.int_range(pl.len(), dtype=pl.UInt32), parent=number.gather(trace.events["parent"].gather(ids))
    )
    tables = dict(trace.tables)
    for name, columns in EVENT_REFERENCES.items():
        tables[name] = _moved(tables[name], columns, number)
    tables["links"] = tables["links"].drop_nulls(["from", "to"])
    within = pl.col("time_ns").is_between(start, end, closed="left")
    tables |= {"events": events, "counters": trace.counters.filter(within)}
    return Trace(tables, {name: _moved(frame, ("event",), number) for name, frame in trace.cold.items()})


def new_numbers(count: int, ids: pl.Series) -> pl.Series:
    """For each of `count` events its number among those with these ids; null for the others."""
    number = repeated(None, count, pl.UInt32, "number")
    return number.scatter(ids, pl.int_range(len(ids), dtype=pl.UInt32, eager=True)) if len(ids) else number


def _moved(frame: pl.DataFrame, columns: tuple[str, ...], number: pl.Series) -> pl.DataFrame:
    """The rows of events that are kept, with their new numbers."""
    if frame.is_empty():
        return frame
    moved = frame.with_columns(number.gather(frame[name]).alias(name) for name in columns)
    return moved.drop_nulls("event") if "event" in columns else moved
