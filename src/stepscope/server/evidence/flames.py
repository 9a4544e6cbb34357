"""The events behind a box of a flame graph.

`frame:NAME` of a call stack has as facts `like`, one of its events, and how much of the path around it counts (`levels`, `base`: see
Likeness). `scope:PATH` has modules and ops with / between them; `anchored` says where in the tree they are. Both say by which
`measure`, of which `step` or range (`from`, `to`) the graph is, and whether the weight is the event's `own`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import polars as pl

from stepscope.analysis.context import RankContext
from stepscope.analysis.flames.costs import MEASURES, Costs, Span
from stepscope.analysis.flames.paths import Likeness, calls_below, events_like
from stepscope.server.evidence.handle import Handle
from stepscope.server.http.request import LARGEST_INTEGER, BadRequest

HIGHEST_EVENT = 2**32 - 1
MOST_LEVELS = 1_000
_BY = {"host": "host time", "device": "device time", "memory": "allocated bytes"}
_ANCHORS = ("top", "end", "")
_INTEGER = re.compile(r"-?[0-9]{1,19}")


def frame_events(context: RankContext, handle: Handle) -> pl.DataFrame:
    """event and weight of the calls with this path."""
    costs = _costs(context, handle.facts)
    like = _number(handle.facts, "like", HIGHEST_EVENT)
    if like is None or like >= len(costs.trace.events):
        raise BadRequest("There is no such event.", where="with")
    levels, base = (_number(handle.facts, name, MOST_LEVELS) for name in ("levels", "base"))
    found = events_like(costs.trace, Likeness(like, levels, base))
    weights = costs.own if handle.facts.get("own") is True else costs.totals
    return pl.DataFrame({"event": found, "weight": weights.gather(found)}).filter(pl.col("weight") > 0)


def scope_events(context: RankContext, handle: Handle) -> pl.DataFrame:
    """event and weight of the calls of ops that this path has."""
    costs = _costs(context, handle.facts)
    anchored = handle.facts.get("anchored", "top")
    if anchored not in _ANCHORS:
        raise BadRequest("anchored must be top, end or empty.", where="with")
    found = calls_below(costs.calls, handle.name, str(anchored))
    return found.select("event", weight="own").filter(pl.col("weight") > 0)


def words_of(facts: dict[str, Any]) -> tuple[str, str]:
    """What the weight is, and its unit."""
    measure = _measure(facts)
    return _BY[measure], "bytes" if measure == "memory" else "ns"


def _costs(context: RankContext, facts: dict[str, Any]) -> Costs:
    step = _number(facts, "step", LARGEST_INTEGER)
    options = context.options if step is None else replace(context.options, steps=(step, step))
    return Costs(RankContext(context.rank, context.whole_trace, options), _measure(facts), _span(facts))


def _measure(facts: dict[str, Any]) -> str:
    measure = facts.get("measure", "host")
    if measure not in MEASURES:
        raise BadRequest(f"measure must be one of {', '.join(MEASURES)}.", where="with")
    return str(measure)


def _span(facts: dict[str, Any]) -> Span | None:
    if facts.get("from") is None and facts.get("to") is None:
        return None
    low, high = (_number(facts, name, LARGEST_INTEGER, -LARGEST_INTEGER) for name in ("from", "to"))
    if low is None or high is None or high <= low:
        raise BadRequest("to must come after from.", where="with")
    return low, high


def _number(facts: dict[str, Any], name: str, most: int, least: int = 0) -> int | None:
    """A whole number, also one that is too long for JavaScript and comes as a text."""
    value = facts.get(name)
    if value is None:
        return None
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        value = int(value)
    if type(value) is not int or not least <= value <= most:
        raise BadRequest(f"{name} must be a whole number from {least:,} to {most:,}.", where="with")
    return value
