"""The events of a ring as tables: each word is a moment at which something began or ended."""

from __future__ import annotations

import polars as pl

from stepscope.formats.ring.areas import RingBytes, int64s
from stepscope.ring_layout import BEGINS, NAME_AT, NAME_BITS, THREAD_AT, THREAD_BITS, TIME_BITS
from stepscope.trace.columns import series


def read_words(ring: RingBytes) -> pl.DataFrame:
    """slot, time, thread, name and begins of each event, in the order of times, and of slots where they are the same."""
    column = series("word", int64s(ring.data[ring.events.offset : ring.events.end]), pl.Int64)
    word = pl.col("word")
    return (
        column.to_frame()
        .with_row_index("slot")
        .filter(word > 0)
        .select(
            "slot",
            time=word % (1 << TIME_BITS),
            thread=word // (1 << THREAD_AT) % (1 << THREAD_BITS),
            name=word // (1 << NAME_AT) % (1 << NAME_BITS),
            begins=word >= BEGINS,
        )
        .sort("time", "slot")
    )


def pair_words(found: pl.DataFrame) -> pl.DataFrame:
    """thread, name, start and end (null where it never came) of each event that begins.

    Of one thread and name, what begins inside of another ends before it: the same depth begins and ends in turns. An end
    without its beginning, which was overwritten, is nothing.
    """
    if found.is_empty():
        return pl.DataFrame(schema={"thread": pl.Int64, "name": pl.Int64, "start": pl.Int64, "end": pl.Int64})
    key = ["thread", "name"]
    change = pl.when("begins").then(1).otherwise(-1)
    depth = change.cum_sum().over(key) + pl.when("begins").then(0).otherwise(1)
    return (
        found.with_columns(depth=depth)
        .with_columns(
            end=pl.col("time").shift(-1).over([*key, "depth"]),
            is_ended=~pl.col("begins").shift(-1).over([*key, "depth"]),
        )
        .filter("begins")
        .select(*key, start="time", end=pl.when("is_ended").then("end"))
    )
