"""When each rank came to each collective, reduced so that any number of ranks can be put together pairwise.

With clocks that agree, a rank comes when its call starts, and a host's call of device tensors once its own device has computed
them; elsewhere all ranks are taken to leave together, so that who spent least time in the call came last. Wait of a rank = the
last arrival − its own. Transfer = the time that the last one spent in the call from then on, since it did not wait.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import polars as pl

from stepscope.ranks.calls.matching import KEY
from stepscope.ranks.clocks.offsets import Clock
from stepscope.registers.policy.ranks import SAME_ARRIVAL_NS
from stepscope.trace.frames import conform

MEETINGS = {
    "lane": pl.UInt64, "place": pl.Int32, "number": pl.Int64, "again": pl.Int32,
    "name": pl.String, "group": pl.String, "group_size": pl.Int32, "dtype": pl.String, "bytes": pl.Int64, "step": pl.Int32,
    "ranks": pl.Int32, "total_ns": pl.Int64, "exposed_ns": pl.Int64,
    "first_ns": pl.Int64, "first_rank": pl.Int32, "last_ns": pl.Int64, "last_rank": pl.Int32, "second_ns": pl.Int64,
    "transfer_ns": pl.Int64, "sum_ns": pl.Float64, "origin_ns": pl.Int64,
}  # fmt: skip
_SAME = ("name", "group", "group_size", "dtype", "bytes", "step")


def comparable(lanes: Mapping[int, Collection[int]], clocks: Mapping[int, Clock]) -> list[int]:
    """The lanes whose ranks all have clocks that can be compared; `lanes` are those of each rank."""
    parts: dict[int, set[int]] = {}
    for rank, mine in lanes.items():
        for lane in mine:
            parts.setdefault(lane, set()).add(clocks[rank].part)
    return sorted(lane for lane, found in parts.items() if len(found) == 1)


def arrivals(rows: pl.DataFrame, clock: Clock, by_clock: Collection[int]) -> pl.DataFrame:
    """The rows of one rank with `arrival_ns`: by the common clock, or before a common end."""
    is_by_clock = pl.col("lane").is_in(pl.Series(sorted(by_clock), dtype=pl.UInt64).implode())
    arrival = pl.when(is_by_clock).then(clock.common("start_ns")).otherwise(-pl.col("dur_ns"))
    return rows.with_columns(arrival_ns=arrival + pl.col("held_ns"))


def meetings(rows: pl.DataFrame) -> pl.DataFrame:
    """One rank's arrivals as the meetings that it alone knows of; a second arrival is not known yet."""
    own = rows.select(
        *KEY,
        *_SAME,
        ranks=pl.lit(1),
        total_ns="dur_ns",
        exposed_ns="exposed_ns",
        first_ns="arrival_ns",
        first_rank="rank",
        last_ns="arrival_ns",
        last_rank="rank",
        second_ns=pl.lit(None),
        transfer_ns=pl.col("dur_ns") - pl.col("held_ns"),
        sum_ns=pl.lit(0.0),
        origin_ns="arrival_ns",
    )
    return conform(own, MEETINGS)


def joined_meetings(frames: Collection[pl.DataFrame]) -> pl.DataFrame:
    """Meetings of several groups of ranks as one; in any order and any nesting the same."""
    rows = pl.concat([pl.DataFrame(schema=MEETINGS), *frames])
    origin = pl.col("origin_ns").min()
    # Sums are kept relative to some arrival: times since 1970 have more digits than a float.
    shifted = pl.col("sum_ns") + pl.col("ranks") * (pl.col("origin_ns") - origin).cast(pl.Float64)
    found = rows.group_by(KEY).agg(
        *(pl.col(name).drop_nulls().min() for name in _SAME),
        *(pl.col(name).sum() for name in ("ranks", "total_ns", "exposed_ns")),
        pl.col("first_ns", "first_rank").sort_by("first_ns", "first_rank").first(),
        pl.col("last_ns", "last_rank", "transfer_ns").sort_by("last_ns", "last_rank").last(),
        second_ns=pl.max_horizontal(
            pl.col("last_ns").sort().get(-2, null_on_oob=True), pl.col("second_ns").max()
        ),
        sum_ns=shifted.sum(),
        origin_ns=origin,
    )
    return conform(found, MEETINGS).sort(KEY)


def finished(found: pl.DataFrame) -> pl.DataFrame:
    """Meetings of at least two ranks, of no more than the group has, with late_ns, skew_ns and mean_wait_ns.

    More ranks than members means several groups of one name, which cannot be distinguished.
    """
    told = pl.col("group_size").is_null() | (pl.col("ranks") <= pl.col("group_size"))
    mean = pl.col("last_ns") - pl.col("origin_ns") - pl.col("sum_ns") / pl.col("ranks")
    return found.filter((pl.col("ranks") > 1) & told).with_columns(
        late_ns=_by_more_than_rounding(pl.col("last_ns") - pl.col("second_ns")),
        skew_ns=pl.col("last_ns") - pl.col("first_ns"),
        mean_wait_ns=mean.round().cast(pl.Int64),
    )


def _by_more_than_rounding(ns: pl.Expr) -> pl.Expr:
    """Arrivals, and waits that end, within a microsecond are at the same time: profilers round to it, and clocks agree no better."""
    return pl.when(ns > SAME_ARRIVAL_NS).then(ns).otherwise(0)


def ambiguous(found: pl.DataFrame) -> pl.DataFrame:
    """Meetings of more ranks than their group has."""
    return found.filter((pl.col("ranks") > 1) & (pl.col("ranks") > pl.col("group_size")))


def waits(rows: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """The arrivals of one rank that met others, with last_rank, late_ns (if it was the last) and wait_ns."""
    there = found.select(*KEY, "last_ns", "last_rank", "late_ns", met="ranks")
    rows = rows.join(there, on=KEY, maintain_order="left")
    wait = (pl.col("last_ns") - pl.col("arrival_ns")).clip(0)
    return rows.with_columns(
        wait_ns=pl.min_horizontal(wait, pl.col("dur_ns") - pl.col("held_ns")),
        late_ns=pl.when(pl.col("last_rank") == pl.col("rank")).then("late_ns").otherwise(0),
    )
