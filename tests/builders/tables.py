"""Small traces written as text: columns stand two spaces apart, and `-` stands for nothing.

    track     start  dur  name            kind
    main          0   10  ProfilerStep#1  annotation
    stream 7      2    4  gemm            kernel

`stream N` is a stream of GPU 0, `over X` is laid over a device, anything else is a host thread. Times are in ns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import polars as pl

from stepscope.trace.draft import Draft
from stepscope.trace.finish import finish
from stepscope.trace.schema import TABLES
from stepscope.trace.trace import Trace, TraceInfo

Row = dict[str, str | None]
EventRow = tuple[str, str, int, int, int]  # name, kind, track, start, duration


def rows(text: str) -> list[Row]:
    """The table's rows by column."""
    lines = [re.split(r"\s{2,}", line.strip()) for line in text.strip().splitlines()]
    return [
        dict(zip(lines[0], (None if cell == "-" else cell for cell in line), strict=True))
        for line in lines[1:]
    ]


def draft(events: str, **tables: Any) -> Draft:
    """A draft of these events in this order. Other tables name events by their row numbers."""
    found = rows(events)
    names = list(dict.fromkeys(row["track"] or "" for row in found))
    frame = pl.DataFrame(
        {
            "track": [names.index(row["track"] or "") for row in found],
            "name": [row["name"] for row in found],
            "kind": [row.get("kind") or "span" for row in found],
            "source_category": [row.get("category") for row in found],
            "start_ns": [int(row["start"] or 0) for row in found],
            "dur_ns": [int(row["dur"] or 0) for row in found],
            "role": [row.get("role") for row in found],
            "step": [None if row.get("step") is None else int(row["step"] or 0) for row in found],
        },
        schema={
            name: TABLES["events"][name]
            for name in ("track", "name", "kind", "source_category", "start_ns", "dur_ns", "role", "step")
        },
    )
    given = [name for name in ("role", "step") if name not in (found[0] if found else {})]
    tracks = pl.DataFrame(
        [_track(number, name) for number, name in enumerate(names)], schema=TABLES["tracks"]
    )
    return Draft(info=TraceInfo(), events=frame.drop(given), tracks=tracks, **tables)


def _track(number: int, name: str) -> dict[str, Any]:
    host: dict[str, Any] = {"id": number, "thread": name, "device_kind": "cpu", "what": "host"}
    device = {"device": 0, "device_kind": "gpu"}
    if name.startswith("stream "):
        return host | device | {"what": "device", "stream": int(name.split()[1])}
    return host | device | {"what": "derived"} if name.startswith("over ") else host


def trace(events: str, **tables: Any) -> Trace:
    """The finished trace."""
    return finish(draft(events, **tables))


def trace_of_rows(events: Sequence[EventRow], info: TraceInfo | None = None, **tables: Any) -> Trace:
    """The trace of events that a test computes: name, kind, track, start and duration; track 1 is a stream, others are threads."""
    columns = ("name", "kind", "track", "start_ns", "dur_ns")
    frame = pl.DataFrame(
        list(events), schema={name: TABLES["events"][name] for name in columns}, orient="row"
    )
    numbers = range(max((event[2] for event in events), default=0) + 1)
    names = ["stream 7" if number == 1 else f"thread {number}" for number in numbers]
    tracks = pl.DataFrame(
        [_track(number, name) for number, name in enumerate(names)], schema=TABLES["tracks"]
    )
    return finish(Draft(info=info or TraceInfo(), events=frame, tracks=tracks, **tables))


def check(found: Trace | pl.DataFrame, expected: str) -> None:
    """The events, or another table, have these rows; only the columns that are written down are looked at."""
    wanted = rows(expected)
    frame = (
        found.events.join(found.tracks, left_on="track", right_on="id") if isinstance(found, Trace) else found
    )
    if isinstance(found, Trace):
        frame = (
            frame.drop("track").rename({"thread": "track", "start_ns": "start", "dur_ns": "dur"}).sort("id")
        )
    shown = [{name: _shown(row[name]) for name in wanted[0]} for row in frame.iter_rows(named=True)]
    assert shown == wanted


def _shown(value: Any) -> str | None:
    return None if value is None else str(value)
