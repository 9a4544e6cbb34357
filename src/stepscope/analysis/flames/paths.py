"""The events of a box in a flame graph: those with the same names around them as one that is known."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.ops.flame import NO_SCOPE, host_threads, without_numbers
from stepscope.registers.policy.tables import DEEPEST_STACK
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace


@dataclass(frozen=True)
class Likeness:
    """`levels`: how many of the names around it must be the same, None for all of them and the thread.

    `base`: the event that is this number of levels further out is not inside another of its own name; None where that does not matter.
    """

    like: int
    levels: int | None = None
    base: int | None = None


def events_like(trace: Trace, wanted: Likeness) -> pl.Series:
    """The ids of the events whose path is that of the event `like`."""
    events = trace.events
    names = without_numbers(events["name"]).to_physical()
    above = _ancestors_of(events["parent"], wanted.like)
    levels = len(above) if wanted.levels is None else min(wanted.levels, len(above))
    found = events.select("id", "track", "depth", at="id").filter(
        names.eq_missing(pl.repeat(names[wanted.like], len(names), dtype=names.dtype, eager=True))
    )
    if wanted.levels is None:
        found = found.filter(
            pl.col("depth") == events["depth"][wanted.like],
            pl.col("track").is_in(_tracks_beside(trace, events["track"][wanted.like]).implode()),
        )
    if wanted.base == 0:
        found = _outermost(events, names, found)
    for level, outer in enumerate(above[:levels], start=1):
        up = events["parent"].gather(found["at"])
        found = found.with_columns(at=up).filter((names.gather(up) == names[outer]).fill_null(False))
        if wanted.base == level:
            found = _outermost(events, names, found)
    return found["id"]


def _ancestors_of(parent: pl.Series, event: int) -> list[int]:
    """Those around an event, the innermost first."""
    found: list[int] = []
    at = parent[event]
    while at is not None and len(found) < DEEPEST_STACK:
        found.append(at)
        at = parent[at]
    return found


def _tracks_beside(trace: Trace, track: int) -> pl.Series:
    """The tracks of the threads that are called like that of this one."""
    threads = host_threads(trace)
    name = threads.filter(pl.col("track") == track)["thread"]
    return threads.filter(pl.col("thread").is_in(name.implode()))["track"]


def _outermost(events: pl.DataFrame, names: pl.Series, found: pl.DataFrame) -> pl.DataFrame:
    """Those whose event `at`, all of one name, is not inside another of that name."""
    if found.is_empty():
        return found
    is_same = names == names[found["at"][0]]
    inside = ancestors(events, is_same.fill_null(False)).gather(found["at"])
    return found.filter(inside.is_null())


def calls_below(calls: pl.DataFrame, path: str, anchored: str) -> pl.DataFrame:
    """Calls of ops whose scopes and name, with / between them, begin or end with the path, or have it somewhere (`anchored` is "")."""
    scope = pl.col("scope").cast(pl.String).fill_null(NO_SCOPE)
    whole = pl.concat_str(
        pl.lit("/"), scope, pl.lit("/"), pl.col("name").cast(pl.String).fill_null(""), pl.lit("/")
    )
    wanted = pl.lit(f"/{path}/")
    inside = calls.filter(pl.col("step").is_not_null()) if calls["step"].count() else calls
    ways = {"top": whole.str.starts_with(wanted), "end": whole.str.ends_with(wanted)}
    return inside.filter(ways.get(anchored, whole.str.contains(wanted, literal=True)))
