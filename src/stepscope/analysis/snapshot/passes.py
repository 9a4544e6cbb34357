"""The passes over a line: its allocations come in the same order each time, so a stack that occurs once in a pass marks it."""

from __future__ import annotations

import polars as pl

from stepscope.registers.policy.snapshot import FEWEST_PASSES, LOOP_ENDED, USUAL_LIFE


def find_passes(stack: pl.Series) -> pl.Series:
    """The rows with which each pass over a line begins; none where nothing marks them."""
    rows = pl.DataFrame({"stack": stack}).with_row_index("row")
    marks = (
        rows.group_by("stack")
        .agg(pl.len().alias("count"), first=pl.col("row").first(), last=pl.col("row").last())
        .filter(pl.col("count") >= FEWEST_PASSES)
        .with_columns(period=(pl.col("last") - pl.col("first")) / (pl.col("count") - 1))
        .filter(
            pl.col("first") <= 2 * pl.col("period"), len(stack) - pl.col("last") <= 2 * pl.col("period") + 1
        )
    )
    if marks.is_empty():
        return pl.Series("row", [], dtype=pl.Int64)
    fewest = int(marks["count"].min())  # type: ignore[arg-type]
    mark = marks.filter(pl.col("count") <= fewest + 1).sort("first").row(0, named=True)
    places = rows.filter(pl.col("stack") == mark["stack"])["row"].cast(pl.Int64)
    starts: pl.Series = (places - min(mark["first"], round(mark["period"]) - 1)).clip(lower_bound=0)
    following = int(starts[-1]) + round(mark["period"])
    more = [following] if following < len(stack) else []
    return pl.concat([starts, pl.Series(more, dtype=pl.Int64)])


def number(places: pl.Series, begins: pl.Series) -> pl.Series:
    """The pass in which each place is, from 1 on; 0 before the first one, and where the history does not reach back to it."""
    found: pl.Series = begins.search_sorted(places.fill_null(-1), side="right").cast(pl.Int64)
    return found


def has_ended(begins: pl.Series, end: int) -> bool:
    """Whether the loop over this line is over: data that was loaded before the training stays and does not grow."""
    return end - int(begins[-1]) > LOOP_ENDED * int(begins.diff().max() or 0)  # type: ignore[arg-type]


def usual_life(history: pl.DataFrame, begins: pl.Series) -> float:
    """For how many passes a released allocation lived, in nine of ten cases at most."""
    released = history.drop_nulls("freed_place")
    if released.is_empty():
        return 0.0
    lived = number(released["freed_place"], begins) - number(released["place"], begins)
    return float(lived.quantile(USUAL_LIFE) or 0)
