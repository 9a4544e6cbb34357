"""What goes with a cause: idle time right beside it, which the replay says would vanish too.

A wait for the device empties its queue, and the launches that fill it again are seen as slow; compiling is followed by first
calls. A finding that promises such time owns it, so that no promise exceeds what is owned and nothing is promised twice. It
owns at most as much again as it owns anyway: the replay is surest of what it takes out.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from stepscope.trace.columns import repeated
from stepscope.trace.frames import take_largest

# Idle for no reason of its own: what the host does on the way from one launch to the next, and how long that takes.
FOLLOWING = ("dispatch", "device_gap", "sync", "unexplained")
_FAR = 1 << 62


def following(
    free: pl.DataFrame, owned: pl.DataFrame, missing_ns: float, parts: Sequence[str]
) -> pl.DataFrame:
    """Of the free slices of these parts those nearest to the owned ones, until they make up what is missing; both have start, end and ns."""
    most = min(missing_ns, float(owned["ns"].sum()))
    if most <= 0:
        return free.clear()
    rows = free.filter(pl.col("part").is_in(parts))
    size = 1 + max(take_largest(rows["slice"]), take_largest(owned["slice"]))
    is_mine = repeated(False, size, pl.Boolean).scatter(owned["slice"], True)
    rows = rows.filter(~is_mine.gather(rows["slice"]))
    ordered = rows.gather(_distance(rows, owned).arg_sort())
    before = ordered["ns"].cum_sum() - ordered["ns"]
    return ordered.filter(before < most)


def _distance(rows: pl.DataFrame, owned: pl.DataFrame) -> pl.Series:
    """How far each row is from the nearest owned slice, in time."""
    mine = owned.select("start_ns", "end_ns").sort("start_ns")
    place = mine["start_ns"].search_sorted(rows["start_ns"])
    ends = pl.concat([pl.Series([-_FAR], dtype=pl.Int64), mine["end_ns"]])
    starts = pl.concat([mine["start_ns"], pl.Series([_FAR], dtype=pl.Int64)])
    after = rows["start_ns"] - ends.gather(place)
    until = starts.gather(place) - rows["end_ns"]
    return pl.select(pl.min_horizontal(after, until)).to_series()
