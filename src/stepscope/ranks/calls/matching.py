"""The same collective on different ranks: by process group and sequence number, else by order within a step.

Compiled programs may run independent collectives in any order: theirs is that of the instructions' names, the same everywhere.
Ranks that made another number of calls than most in a step cannot be matched there by order, and are left out of it.
"""

from __future__ import annotations

from hashlib import blake2b

import polars as pl

from stepscope.trace.frames import conform

# Nobody leaves them before everybody has come; the root of a broadcast or reduction may.
SYMMETRIC = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier")
# Everybody leaves them at the same moment, save for the noise of the transfer.
TOGETHER = ("all_reduce", "barrier")
KEY = ("lane", "place", "number", "again")
KEYED = {
    "lane": pl.UInt64,  # operation and group
    "place": pl.Int32,  # the step, where calls carry no number; else -1
    "number": pl.Int64,  # the sequence number, else the call's turn in the step
    "again": pl.Int32,  # of several calls with one number
    "rank": pl.Int32,
    "name": pl.String,
    "group": pl.String,
    "group_size": pl.Int32,
    "dtype": pl.String,
    "bytes": pl.Int64,
    "step": pl.Int32,
    "start_ns": pl.Int64,
    "dur_ns": pl.Int64,
    "exposed_ns": pl.Int64,
    "held_ns": pl.Int64,  # of its time: until the rank itself was ready
    "on_host": pl.Boolean,
    "stream": pl.Int32,  # of a kernel whose group has no name; else null
}
COUNTS = {"lane": pl.UInt64, "place": pl.Int32, "calls": pl.UInt32, "ranks": pl.UInt32, "example": pl.Int32}
_SAME = ("name", "group", "group_ranks", "device", "stream")
_BY_NUMBER = -1
_ALL = -2  # the place that stands for the whole recording


def keyed(calls: pl.DataFrame, rank: int, shift_ns: int = 0) -> pl.DataFrame:
    """The rank's calls that can be matched, with their key; `calls` are those of `collective_calls`."""
    return keyed_with_events(calls, rank, shift_ns)[0]


def keyed_with_events(calls: pl.DataFrame, rank: int, shift_ns: int = 0) -> tuple[pl.DataFrame, pl.Series]:
    """The same, and the events of these calls."""
    rows = _in_order(calls)
    numbered, told = pl.col("sequence").is_not_null(), pl.coalesce("group", "group_ranks").is_not_null()
    on_host = pl.col("on_host").fill_null(False)
    rows = rows.with_columns(stream=pl.when(~told & ~on_host).then("stream"))
    place = pl.when(numbered).then(_BY_NUMBER).otherwise(pl.col("step").fill_null(0))
    rows = rows.with_columns(_lanes(rows), place=place)
    turn = pl.int_range(pl.len()).over("lane", "place")
    rows = rows.with_columns(number=pl.when(numbered).then("sequence").otherwise(turn))
    matched = rows.select(
        *("lane", "place", "number"),
        pl.int_range(pl.len()).over("lane", "place", "number").alias("again"),
        pl.lit(rank, dtype=pl.Int32).alias("rank"),
        *("name", "group", "group_size", "dtype", "bytes", "step"),
        pl.col("start_ns") + shift_ns,
        *("dur_ns", "exposed_ns"),
        pl.col("held_ns").fill_null(0),
        on_host,
        "stream",
    )
    return conform(matched, KEYED), rows["event"]


def _in_order(calls: pl.DataFrame) -> pl.DataFrame:
    return calls.filter(pl.col("name").is_in(SYMMETRIC)).sort("label", "start_ns", "event")


def _lanes(rows: pl.DataFrame) -> pl.Series:
    """One number for an operation of a group, the same in every process and on every machine."""
    texts = rows.select(
        pl.concat_str(
            *(pl.col(name).cast(pl.String).fill_null("\0") for name in _SAME),
            pl.col("sequence").is_not_null().cast(pl.String),
            separator="\1",
        )
    ).to_series()
    distinct = texts.unique()
    numbers = [int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") for text in distinct]
    fresh = pl.Series(numbers, dtype=pl.UInt64)
    lanes: pl.Series = texts.replace_strict(distinct, fresh, return_dtype=pl.UInt64)
    return lanes.alias("lane")


def counts(rows: pl.DataFrame) -> pl.DataFrame:
    """How many calls a rank made in each lane and step, and in all; to be added up over ranks."""
    whole = rows.with_columns(place=pl.lit(_ALL, dtype=pl.Int32))
    places = pl.concat([rows, whole]).group_by("lane", "place")
    found = places.agg(pl.len().alias("calls"), pl.col("rank").first().alias("example"))
    return conform(found.with_columns(ranks=pl.lit(1)), COUNTS)


def added_counts(frames: list[pl.DataFrame]) -> pl.DataFrame:
    """Counts of many ranks: how many made each number of calls."""
    rows = pl.concat([pl.DataFrame(schema=COUNTS), *frames])
    found = rows.group_by("lane", "place", "calls").agg(pl.col("ranks").sum(), pl.col("example").min())
    return conform(found, COUNTS).sort("lane", "place", "calls")


def usual(counted: pl.DataFrame) -> pl.DataFrame:
    """lane, place, calls: what most ranks did; of two equally frequent counts the greater."""
    return (
        counted.sort("ranks", "calls", descending=True)
        .unique(["lane", "place"], keep="first", maintain_order=True)
        .select("lane", "place", "calls")
        .sort("lane", "place")
    )


def unusual(counted: pl.DataFrame) -> pl.DataFrame:
    """Counts over the whole recording that differ from the usual."""
    whole = counted.filter(pl.col("place") == _ALL)
    return whole.join(usual(whole), on=["lane", "place", "calls"], how="anti")


def matchable(rows: pl.DataFrame, most: pl.DataFrame) -> pl.DataFrame:
    """The rows of a rank without those steps in which it made another number of calls than most."""
    calls = pl.len().over("lane", "place").cast(pl.UInt32)
    return only_usual(rows.with_columns(calls=calls), most).drop("calls")


def only_usual(rows: pl.DataFrame, most: pl.DataFrame) -> pl.DataFrame:
    """The rows, which have the number of calls of their rank, lane and place, where that is what most ranks did."""
    as_most = most.rename({"calls": "most"})
    known = rows.join(as_most, on=["lane", "place"], how="left", maintain_order="left")
    return known.filter((pl.col("place") == _BY_NUMBER) | (pl.col("calls") == pl.col("most"))).drop("most")
