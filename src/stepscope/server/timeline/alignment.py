"""A rank beside another one: its times on the clock of the one that is shown.

Clocks that only differ by an offset are added up in the browser. Where they also drift apart, the events themselves are moved, once,
and everything that is asked of the rank with `moved` is in the time of that other rank.
"""

from __future__ import annotations

from collections import ChainMap
from dataclasses import dataclass
from typing import Any, cast

import polars as pl

from stepscope.profiles.profile import Profile
from stepscope.ranks.common_time import RankTime, rank_times
from stepscope.server.runs.opened import OpenedRun
from stepscope.trace.trace import Trace

# Above that, only the two ranks in question are looked at: reading all of them would take longer than anybody waits.
MANY_EVENTS = 20_000_000
LEAST_BEND_NS = 500  # less than any collective's end tells


@dataclass(frozen=True)
class Beside:
    """`shift_ns` is added to the rank's times, which were moved already if `is_bent`."""

    shift_ns: int = 0
    is_bent: bool = False
    clock: dict[str, Any] | None = None


def clocks_of(run: OpenedRun, rank: int, shown: int, wait: bool = False) -> dict[int, RankTime]:
    """How the two ranks are placed; NotYet while that is worked out, unless the caller can `wait`."""
    profile = run.profile
    whole = sum(len(trace.events) for trace in profile.traces) <= MANY_EVENTS
    ranks = profile.ranks if whole else sorted((rank, shown))
    name = "timeline clocks" if whole else f"timeline clocks {ranks}"

    def make() -> dict[int, RankTime]:
        return rank_times(Profile(profile.path, [profile.trace(each) for each in ranks], ranks))

    return run.kept(name, make) if wait else run.later(name, make, "aligning clocks")


def beside(run: OpenedRun, rank: int, shown: int) -> Beside:
    """Where the rank's times are on the clock of the one that is shown."""
    if rank == shown:
        return Beside()
    times = clocks_of(run, rank, shown)
    mine, theirs = times[rank], times[shown]
    clock = {
        "aligned_by": mine.how if mine.part == theirs.part else "recorded",
        "offset_ns": _offset(run, mine, theirs),
        "residual_ns": max(mine.residual_ns or 0, theirs.residual_ns or 0) if mine.anchors else None,
        "collectives": mine.anchors,
        "drift_ppm": round((mine.drift - theirs.drift) * 1e6, 3),
    }
    if _bend_ns(run.profile.trace(rank), mine, theirs) >= LEAST_BEND_NS:
        return Beside(0, True, clock)
    return Beside(mine.shift_ns - theirs.shift_ns, False, clock)


def _bend_ns(trace: Trace, mine: RankTime, theirs: RankTime) -> float:
    """How far the clocks drift apart from the middle of the recording to its ends."""
    if trace.events.is_empty():
        return 0.0
    start = pl.col("start_ns")
    span = int(trace.events.select(start.max() - start.min()).item())
    return abs(mine.drift - theirs.drift) * span / 2


def _offset(run: OpenedRun, mine: RankTime, theirs: RankTime) -> int:
    """How far the rank's clock is ahead of the other's, by what both say of the time of day."""
    bases = [_base(run.profile.trace(time.rank)) for time in (mine, theirs)]
    return (bases[0] - mine.shift_ns) - (bases[1] - theirs.shift_ns)


def _base(trace: Trace) -> int:
    return trace.info.base_unix_ns + trace.info.clock_offset_ns


@dataclass(frozen=True)
class _Moved:
    """A trace with times of its own, which count as memory."""

    trace: Trace
    nbytes: int


def moved_trace(run: OpenedRun, rank: int, shown: int) -> Trace:
    """The rank's trace in the time of the one that is shown, where their clocks drift apart."""

    def make() -> _Moved:
        times = clocks_of(run, rank, shown, wait=True)
        return _moved(run.profile.trace(rank), times[rank], times[shown])

    return run.kept(f"timeline moved {rank} {shown}", make).trace


def own_times(run: OpenedRun, rank: int, shown: int, moments: list[int]) -> list[int]:
    """Moments in the time of the one that is shown, in the rank's own."""
    times = clocks_of(run, rank, shown, wait=True)
    there = pl.DataFrame({"at": moments}, schema={"at": pl.Int64})
    return there.select(times[rank].own(times[shown].common(pl.col("at"))))["at"].to_list()


def _moved(trace: Trace, mine: RankTime, theirs: RankTime) -> _Moved:
    def there(column: pl.Expr) -> pl.Expr:
        return theirs.own(mine.common(column))

    start, end = pl.col("start_ns"), pl.col("start_ns") + pl.col("dur_ns")
    columns = trace.events.select(start_ns=there(start), dur_ns=there(end) - there(start))
    tables = {
        "events": trace.events.with_columns(columns),
        "counters": trace.counters.with_columns(time_ns=there(pl.col("time_ns"))),
        "memory": trace.memory.with_columns(time_ns=there(pl.col("time_ns"))),
    }
    held = columns.estimated_size() + tables["counters"].estimated_size() + tables["memory"].estimated_size()
    over = ChainMap(tables, cast("dict[str, pl.DataFrame]", trace.tables))
    return _Moved(Trace.over(over, trace.cold), int(held))
