"""How the memory of a device went: what was allocated by kind and what was reserved, at as many moments as a figure can show."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.snapshot.history import History


@dataclass(frozen=True)
class Course:
    """One entry for each moment: its time, what was reserved, and for each kind what was allocated."""

    time_ns: list[int]
    reserved: list[int]
    kinds: dict[str, list[int]]


def take_course(history: History, start: int, end: int, bins: int) -> Course:
    """The highest and the last event of each of the `bins` equal intervals between start and end."""
    places = _choose_places(history.rows, start, end, bins)
    shown = history.rows[places]
    changes = _list_changes(history)
    kinds = {}
    for (kind,), rows in sorted(changes.partition_by("kind", as_dict=True).items()):
        sums = rows["bytes"].cum_sum()
        behind = rows["place"].search_sorted(places, side="right").cast(pl.Int64) - 1
        known = sums.gather(behind.clip(lower_bound=0))
        kinds[str(kind)] = pl.select(pl.when(behind >= 0).then(known).otherwise(0)).to_series().to_list()
    totals = shown["total_allocated"].to_list()
    _add_rest(kinds, totals)
    ordered = dict(sorted(kinds.items(), key=lambda item: -sum(item[1])))
    return Course(shown["time_ns"].to_list(), shown["total_reserved"].to_list(), ordered)


def _choose_places(rows: pl.DataFrame, start: int, end: int, bins: int) -> pl.Series:
    wide = max(1, -(-(end - start + 1) // bins))
    numbered = rows.with_row_index("place").filter(pl.col("time_ns").is_between(start, end))
    chosen = numbered.group_by((pl.col("time_ns") - start) // wide).agg(
        high=pl.col("place").get(pl.col("total_allocated").arg_max()), last=pl.col("place").last()
    )
    places: pl.Series = pl.concat([chosen["high"], chosen["last"]]).cast(pl.Int64).unique().sort()
    return places


def _list_changes(history: History) -> pl.DataFrame:
    """kind, place, bytes: each allocation and each release, in order; what was there before is at place -1."""
    lives = history.lives
    begins = lives.select("kind", pl.col("place").fill_null(-1), "bytes")
    ends = lives.drop_nulls("freed_place").select("kind", place="freed_place", bytes=-pl.col("bytes"))
    return pl.concat([begins, ends]).sort("place", maintain_order=True)


def _add_rest(kinds: dict[str, list[int]], totals: list[int]) -> None:
    """What the total has and no allocation explains is unknown."""
    rest = [max(0, total - sum(each)) for total, *each in zip(totals, *kinds.values(), strict=True)]
    if any(rest):
        known = kinds.get("unknown", [0] * len(rest))
        kinds["unknown"] = [one + other for one, other in zip(known, rest, strict=True)]
