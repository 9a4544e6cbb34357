"""The events that a problem of the doctor is about, where it is about events that were recorded."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from stepscope.analysis.context import RankContext
from stepscope.trace.finish import UNNAMED
from stepscope.trace.graphs import graph_work

_WORK = ("kernel", "copy", "memset")


def _weighed(events: pl.DataFrame) -> pl.DataFrame:
    return events.select(event="id", weight="dur_ns")


def _kind(*names: str) -> pl.Expr:
    return pl.col("kind").cast(pl.String).is_in(names)


def _unnamed(context: RankContext) -> pl.DataFrame:
    return _weighed(context.trace.events.filter(pl.col("name").cast(pl.String) == UNNAMED))


def _python(context: RankContext) -> pl.DataFrame:
    return _weighed(context.trace.events.filter(_kind("python")))


def _without_launch(context: RankContext) -> pl.DataFrame:
    launched = _launches(context)["to"]
    return _weighed(context.trace.events.filter(_kind(*_WORK), ~pl.col("id").is_in(launched.implode())))


def _without_work(context: RankContext) -> pl.DataFrame:
    launching = _launches(context)["from"]
    is_launch = _kind("runtime") & pl.col("name").cast(pl.String).str.contains("Launch", literal=True)
    return _weighed(context.trace.events.filter(is_launch, ~pl.col("id").is_in(launching.implode())))


def _before_launch(context: RankContext) -> pl.DataFrame:
    """Weighed by how much too early it starts."""
    starts = context.trace.events["start_ns"]
    links = _launches(context)
    early = starts.gather(links["from"]) - starts.gather(links["to"])
    return links.select(event="to").with_columns(weight=early).filter(pl.col("weight") > 0)


def _at_zero(context: RankContext) -> pl.DataFrame:
    return _weighed(context.trace.events.filter(_kind(*_WORK), pl.col("start_ns") == 0))


def _in_graphs(context: RankContext) -> pl.DataFrame:
    inside = graph_work(context.trace)["event"]
    return _weighed(context.trace.events.filter(pl.col("id").is_in(inside.implode())))


def _unnamed_collectives(context: RankContext) -> pl.DataFrame:
    known = context.trace.collectives.drop_nulls("bytes")["event"]
    return _weighed(
        context.trace.events.filter(pl.col("role") == "collective", ~pl.col("id").is_in(known.implode()))
    )


def _waits_without_record(context: RankContext) -> pl.DataFrame:
    trace = context.trace
    sync = trace.cold.get("sync")
    if sync is None or "wait_on_event" not in sync.columns:
        return _weighed(trace.events.clear())
    known = trace.links.filter(pl.col("why") == "record-wait")["to"]
    waits = sync.drop_nulls("wait_on_event").filter(~pl.col("event").is_in(known.implode()))["event"]
    return _weighed(trace.events.filter(pl.col("id").is_in(waits.implode())))


def _launches(context: RankContext) -> pl.DataFrame:
    return context.trace.links.filter(pl.col("why") == "launch")


EVENTS: dict[str, Callable[[RankContext], pl.DataFrame]] = {
    "unnamed-events": _unnamed,
    "mostly-python": _python,
    "work-without-launch": _without_launch,
    "launches-without-work": _without_work,
    "clock-inversion": _before_launch,
    "zero-time": _at_zero,
    "graphs-hide-ops": _in_graphs,
    "unnamed-collectives": _unnamed_collectives,
    "wait-without-record": _waits_without_record,
}
