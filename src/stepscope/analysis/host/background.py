"""Waits for workers that the job itself runs in the background: results of futures, items of queues, batches of a pool.

What the loop takes from there was made ahead, as input is, whatever the function is named that waits. Threads that wait for
work of their own, such as those of a pool, are left out: only the thread that launches most asks for results.
"""

from __future__ import annotations

import polars as pl

from stepscope.trace.columns import repeated
from stepscope.trace.frames import take
from stepscope.trace.lookup import is_named
from stepscope.trace.scopes import at_or_inside
from stepscope.trace.trace import Trace

_TAKES = (
    r"(^|/)(concurrent/futures/_base|queue|multiprocessing/(pool|queues))\.py\(\d+\): (result|get|next|__next__)$"
    r"|^\$(_base|queue|pool|queues)\.py:\d+ (result|get|next|__next__)$"
)


def waits_for_workers(trace: Trace) -> pl.Series:
    """Calls of the loop that take what workers make, and all that is inside of them."""
    events = trace.events
    takes = is_named(events, _TAKES) & (events["kind"] == "python")
    calls = trace.links.filter(pl.col("why") == "launch")["from"]
    if calls.is_empty() or not takes.any():
        return repeated(False, len(events), pl.Boolean)
    tracks = take(events["track"], calls.unique()).value_counts()
    framed = events["track"].filter(events["kind"] == "python").unique()
    launching = tracks.filter(pl.col("track").is_in(framed.implode())).sort("count", "track")["track"]
    if launching.is_empty():
        return repeated(False, len(events), pl.Boolean)
    return at_or_inside(events, takes & (events["track"] == launching[-1]))
