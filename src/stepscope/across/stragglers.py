"""Which rank the others wait for: collectives that all ranks must enter before any can leave, matched over ranks.

Such a collective ends for all ranks at about the same time, so who spent least time in it came last, and no clocks have
to be compared. Lateness of the last rank = the shortest time of the others in that collective − its own: what would
have been saved had it come with the next one. A rank's wait = its time − the time of the rank that came last.
Calls are matched by group and sequence number, else by their order among the calls of the same operation of one step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

# Nobody leaves them before everybody has come; the root of a broadcast or reduction may.
SYMMETRIC = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier")
LATE_SHARE = 0.03
MOST_OF_IT = 0.5
ALWAYS = 0.8
ENOUGH_STEPS = 3
RANKS = {"rank": pl.Int32, "matched": pl.Int64, "last": pl.Int64, "late_ns": pl.Int64, "wait_ns": pl.Int64}


@dataclass(frozen=True)
class Straggler:
    """The rank that is waited for; `share` is of the steps' time, `steps_late` of `steps` are those that it held up most."""

    rank: int
    late_ns: int
    late_ns_per_step: int
    share: float
    last: int
    matched: int
    steps_late: int
    steps: int
    names: tuple[str, ...]

    @property
    def always(self) -> bool:
        """Late in nearly every step, which is more work or a slower machine, and not chance."""
        return self.steps >= ENOUGH_STEPS and self.steps_late >= ALWAYS * self.steps


def lateness(calls: Mapping[int, pl.DataFrame]) -> pl.DataFrame:
    """key, name, step, rank, is_last, late_ns, wait_ns: a row for each matched call of each rank.

    `calls` are those of `collective_calls`, by rank.
    """
    rows = pl.concat([_keyed(frame, rank) for rank, frame in calls.items()]) if calls else pl.DataFrame()
    if rows.is_empty():
        return pl.DataFrame(schema=_LATENESS)
    time = pl.col("dur_ns")
    beside = rows.with_columns(
        ranks=pl.len().over("key"),
        distinct=pl.col("rank").n_unique().over("key"),
        place=time.rank("ordinal").over("key"),
        least=time.min().over("key"),
    ).filter((pl.col("ranks") > 1) & (pl.col("ranks") == pl.col("distinct")))
    second = time.filter(pl.col("place") == 2).first().over("key")
    is_last = pl.col("place") == 1
    return beside.select(
        "key",
        "name",
        "step",
        "rank",
        is_last=is_last,
        late_ns=pl.when(is_last).then(second - time).otherwise(0),
        wait_ns=time - pl.col("least"),
    ).cast(_LATENESS)  # type: ignore[arg-type]


def by_rank(late: pl.DataFrame) -> pl.DataFrame:
    """rank, matched calls, how often it came last, how much too late, how long it waited for others."""
    return (
        late.group_by("rank")
        .agg(
            pl.len().alias("matched"),
            pl.col("is_last").sum().alias("last"),
            pl.col("late_ns", "wait_ns").sum(),
        )
        .sort("rank")
        .cast(RANKS)  # type: ignore[arg-type]
    )


def straggler(late: pl.DataFrame, step_ns: int, steps: int) -> Straggler | None:
    """The rank that causes most of the waiting, if that is much of the time `step_ns` of all `steps` of one rank."""
    ranks = by_rank(late).sort("late_ns", "rank", descending=[True, False])
    total = int(ranks["late_ns"].sum())
    if not total or not step_ns or not steps:
        return None
    worst = ranks.row(0, named=True)
    share = worst["late_ns"] / step_ns
    if share < LATE_SHARE or worst["late_ns"] < MOST_OF_IT * total:
        return None
    mine = late.filter((pl.col("rank") == worst["rank"]) & pl.col("is_last"))
    names = (
        mine.group_by("name").agg(pl.col("late_ns").sum()).sort("late_ns", "name", descending=[True, False])
    )
    return Straggler(
        rank=worst["rank"],
        late_ns=worst["late_ns"],
        late_ns_per_step=worst["late_ns"] // steps,
        share=share,
        last=worst["last"],
        matched=worst["matched"],
        steps_late=_steps_held_up(late, worst["rank"]),
        steps=steps,
        names=tuple(names["name"].head(3)),
    )


_LATENESS = {
    "key": pl.UInt64,
    "name": pl.String,
    "step": pl.Int32,
    "rank": pl.Int32,
    "is_last": pl.Boolean,
    "late_ns": pl.Int64,
    "wait_ns": pl.Int64,
}


def _keyed(calls: pl.DataFrame, rank: int) -> pl.DataFrame:
    """Every symmetric call with what it has in common with the same call on other ranks."""
    same = ("name", "group", "group_ranks")
    rows = calls.filter(pl.col("name").is_in(SYMMETRIC)).sort("start_ns", "event")
    turn = pl.int_range(pl.len()).over(*same, "step")
    by_number = pl.col("sequence").is_not_null()
    key = pl.struct(
        *same,
        step=pl.when(~by_number).then("step"),
        turn=pl.when(by_number).then("sequence").otherwise(turn),
        by_number=by_number,
    ).hash()
    return rows.select("name", "step", "dur_ns", rank=pl.lit(rank, dtype=pl.Int32), key=key)


def _steps_held_up(late: pl.DataFrame, rank: int) -> int:
    by_step = late.group_by("step", "rank").agg(pl.col("late_ns").sum())
    worst = by_step.sort("late_ns", "rank", descending=[True, False]).unique("step", keep="first")
    return len(worst.filter((pl.col("rank") == rank) & (pl.col("late_ns") > 0)))
