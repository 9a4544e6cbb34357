"""One collective on several ranks: which calls are the same, each in its place of the picture."""

from __future__ import annotations

from typing import Any

import msgspec
import polars as pl

from stepscope.analysis.collectives.calls import recorded_calls
from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options
from stepscope.ranks.calls.matching import KEY, keyed_with_events
from stepscope.server.runs.opened import OpenedRun
from stepscope.server.timeline.alignment import beside
from stepscope.server.timeline.details import row_of
from stepscope.server.timeline.view import view_at

MOST_RANKS = 64


class Call(msgspec.Struct):
    """The call of one rank; `start_ns` on the clock of the rank that is shown."""

    rank: int
    id: int
    track: int
    row: int
    after_ns: int
    dur_ns: int
    start_ns: int


def meeting_of(run: OpenedRun, rank: int, event: int, ranks: list[int], shown: int) -> list[Call]:
    """The same call on each of the ranks, its own included; empty for what is not a collective, or cannot be matched."""
    own = _calls(run, rank)
    mine = own.filter(pl.col("event") == event)
    if mine.is_empty():
        return []
    found = []
    for other in ranks[:MOST_RANKS]:
        match = _calls(run, other).join(mine.select(*KEY, "calls"), on=[*KEY, "calls"], how="semi")
        if len(match):
            found.append(_placed(run, other, int(match["event"][0]), shown))
    return found if len(found) > 1 else []


def _calls(run: OpenedRun, rank: int) -> pl.DataFrame:
    """event, its key, and how many calls there are where only their order matches them."""

    def make() -> pl.DataFrame:
        trace = run.profile.trace(rank)
        if not (trace.events["role"] == "collective").any():
            return _NONE
        calls = recorded_calls(RankContext(rank, trace, Options()).trace)
        by_order = pl.when(pl.col("place") < 0).then(0).otherwise(pl.len().over("lane", "place"))
        rows, events = keyed_with_events(calls, rank)
        return rows.select(*KEY, calls=by_order.cast(pl.Int64)).with_columns(event=events)

    return run.later(f"timeline calls {rank}", make, "matching collectives")


_NONE = pl.DataFrame(
    schema={
        "lane": pl.UInt64, "place": pl.Int32, "number": pl.Int64, "again": pl.Int32, "calls": pl.Int64,
        "event": pl.UInt32,
    }
)  # fmt: skip


def _placed(run: OpenedRun, rank: int, event: int, shown: int) -> Call:
    placed = beside(run, rank, shown)
    view = view_at(run, rank, shown if placed.is_bent else None)
    row: dict[str, Any] = view.trace.events.row(event, named=True)
    return Call(
        rank=rank,
        id=event,
        track=row["track"],
        row=row_of(view, row),
        after_ns=row["start_ns"] - view.extent.start_ns,
        dur_ns=row["dur_ns"],
        start_ns=row["start_ns"] + placed.shift_ns,
    )
