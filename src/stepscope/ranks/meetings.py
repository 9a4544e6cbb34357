"""Meetings reduced by process group: what a job's conclusions need of them are sums, which groups add up to.

Ranks of one group meet in calls of its own, so that the meetings of a group can be put together, reduced and kept wherever its ranks were read.
What leaves that place grows with the number of groups and not with that of calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from stepscope.lazy import dataclass
from stepscope.ranks.arrivals import MEETINGS, ambiguous, finished
from stepscope.ranks.calls.matching import KEY, KEYED
from stepscope.registers.policy.ranks import WORST_COLLECTIVES
from stepscope.trace.frames import conform

OPERATION = ("name", "group", "group_size", "dtype")
OPERATIONS = {name: KEYED[name] for name in OPERATION} | {
    "wait_ns": pl.Int64,
    "transfer_ns": pl.Int64,
    "sized_bytes": pl.Int64,  # of transfers whose size is known
    "sized_ns": pl.Int64,
    "fewest": pl.Int32,  # ranks in a meeting
    "most": pl.Int32,
}
LAST = {"last_rank": pl.Int32, "name": pl.String, "late_ns": pl.Int64}
LANES = {name: KEYED[name] for name in ("lane", "name", "group")}
DONE = MEETINGS | dict.fromkeys(("late_ns", "skew_ns", "mean_wait_ns"), pl.Int64)


@dataclass(frozen=True)
class Group:
    """Ranks that meet each other, and the lanes of their calls."""

    ranks: tuple[int, ...]
    lanes: tuple[int, ...]


@dataclass(frozen=True)
class Met:
    """Meetings in sums; `worst`: DONE, those in which ranks waited longest."""

    count: int
    ambiguous: int
    operations: pl.DataFrame  # OPERATIONS
    last: pl.DataFrame  # LAST
    lanes: pl.DataFrame  # LANES
    worst: pl.DataFrame


def groups_of(lanes: Mapping[int, Sequence[int]]) -> list[Group]:
    """Of the lanes of each rank: lanes of the same ranks are one group, and a lane of a single rank is left out."""
    ranks: dict[int, list[int]] = {}
    for rank in sorted(lanes):
        for lane in lanes[rank]:
            ranks.setdefault(lane, []).append(rank)
    found: dict[tuple[int, ...], list[int]] = {}
    for lane in sorted(ranks):
        if len(ranks[lane]) > 1:
            found.setdefault(tuple(ranks[lane]), []).append(lane)
    return [Group(members, tuple(mine)) for members, mine in sorted(found.items())]


def in_lanes(rows: pl.DataFrame, lanes: Sequence[int]) -> pl.DataFrame:
    """The rows of these lanes."""
    return rows.filter(pl.col("lane").is_in(pl.Series(lanes, dtype=pl.UInt64).implode()))


def reduce_meetings(found: pl.DataFrame) -> Met:
    """Of meetings as joined."""
    done = finished(found)
    sized = pl.col("bytes").is_not_null() & (pl.col("transfer_ns") > 0)
    operations = done.group_by(OPERATION).agg(
        (pl.col("mean_wait_ns") * pl.col("ranks")).sum().alias("wait_ns"),
        pl.col("transfer_ns").sum(),
        sized_bytes=pl.col("bytes").filter(sized).sum(),
        sized_ns=pl.col("transfer_ns").filter(sized).sum(),
        fewest=pl.col("ranks").min(),
        most=pl.col("ranks").max(),
    )
    last = done.group_by("last_rank", "name").agg(pl.col("late_ns").sum())
    lanes = done.unique("lane", keep="first", maintain_order=True)
    return Met(
        count=len(done),
        ambiguous=len(ambiguous(found)),
        operations=conform(operations, OPERATIONS).sort(OPERATION),
        last=conform(last, LAST).sort("last_rank", "name"),
        lanes=conform(lanes, LANES),
        worst=conform(worst(done), DONE),
    )


def add_met(parts: Sequence[Met]) -> Met:
    """Those of all groups together."""
    operations = pl.concat([pl.DataFrame(schema=OPERATIONS), *(part.operations for part in parts)])
    sums = operations.group_by(OPERATION).agg(
        pl.col("wait_ns", "transfer_ns", "sized_bytes", "sized_ns").sum(),
        pl.col("fewest").min(),
        pl.col("most").max(),
    )
    last = pl.concat([pl.DataFrame(schema=LAST), *(part.last for part in parts)])
    return Met(
        count=sum(part.count for part in parts),
        ambiguous=sum(part.ambiguous for part in parts),
        operations=conform(sums, OPERATIONS).sort(OPERATION),
        last=last.group_by("last_rank", "name").agg(pl.col("late_ns").sum()).sort("last_rank", "name"),
        lanes=pl.concat([pl.DataFrame(schema=LANES), *(part.lanes for part in parts)]),
        worst=worst(pl.concat([pl.DataFrame(schema=DONE), *(part.worst for part in parts)])),
    )


def worst(done: pl.DataFrame) -> pl.DataFrame:
    """The meetings in which ranks waited longest, summed over ranks."""
    lost = pl.col("mean_wait_ns") * pl.col("ranks")
    return done.sort(lost, *KEY, descending=[True, *(False for _ in KEY)]).head(WORST_COLLECTIVES)
