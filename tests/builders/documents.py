"""Trace documents of a few lines, as Kineto and others write them."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from stepscope.trace.trace import Trace

Event = dict[str, Any]


def event(cat: str | None, name: str = "x", ts: Any = 0, dur: Any = 1, /, **more: Any) -> Event:
    """A complete event on thread 1; `args`, `ph`, `pid` and `tid` as keywords."""
    found: Event = {"ph": "X", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur}
    return found | ({"cat": cat} if cat else {}) | more


def span(cat: str, name: str, ts: Any, dur: Any = 1, /, pid: Any = 1, tid: Any = 1, **args: Any) -> Event:
    """A complete event whose keywords are its arguments."""
    return event(cat, name, ts, dur, pid=pid, tid=tid, args=args)


def on_stream(cat: str, name: str = "x", ts: Any = 0, dur: Any = 1, /, stream: int = 7, **args: Any) -> Event:
    """Work on a stream of device 0."""
    return event(cat, name, ts, dur, pid=0, tid=stream, args=args)


def half(phase: str, name: str, ts: float, **more: Any) -> Event:
    """An event of another phase."""
    return {"ph": phase, "name": name, "pid": 1, "tid": 1, "ts": ts, **more}


def kineto_document(*events: Event, **header: Any) -> dict[str, Any]:
    """These events under Kineto's header."""
    first = {"schemaVersion": 1, "deviceProperties": []}
    return {**first, **header, "traceEvents": list(events), "traceName": "x"}


def kineto(*events: Event, **header: Any) -> bytes:
    """The same as a file."""
    return json.dumps(kineto_document(*events, **header)).encode()


def chrome(*events: Event, **header: Any) -> bytes:
    """A document of nobody in particular."""
    return json.dumps({**header, "traceEvents": list(events)}).encode()


def named(trace: Trace, name: str) -> dict[str, Any]:
    """The one event of this name."""
    rows = trace.events.filter(pl.col("name").cast(pl.String) == name)
    assert len(rows) == 1, trace.events
    return rows.row(0, named=True)


def told(trace: Trace, event_id: int) -> dict[str, Any]:
    """All that the tables and the arguments say of one event, as `table.column` or `arguments.name`."""
    found = {f"arguments.{name}": value for name, value in trace.arguments(event_id).items()}
    for table in ("ops", "kernels", "copies", "memory", "collectives"):
        for row in trace.tables[table].filter(pl.col("event") == event_id).iter_rows(named=True):
            found |= {
                f"{table}.{name}": value
                for name, value in row.items()
                if value is not None and name != "event"
            }
    return found


def codes(trace: Trace) -> dict[str, int]:
    """The problems by code, with how often they were met."""
    return dict(trace.problems.select("code", "count").iter_rows())


def links(trace: Trace) -> list[tuple[str, str, str]]:
    """The links by the names of their ends."""
    name = trace.events["name"].cast(pl.String)
    begin, end = name.gather(trace.links["from"]), name.gather(trace.links["to"])
    return sorted(zip(begin, end, trace.links["why"], strict=True))
