"""One event: what it is, what encloses it, what it is linked to, and what its tables say of it."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.server.timeline.view import View
from stepscope.trace.trace import Trace

MOST_LINKS = 200
DEEPEST_STACK = 500
LONGEST_VALUE = 20_000
MOST_ARGUMENTS = 500
_TABLES = ("ops", "kernels", "copies", "collectives", "memory")


def event_details(view: View, number: int) -> dict[str, Any]:
    """All but the arguments, which may have to be unpacked first."""
    trace = view.trace
    event = trace.events.row(number, named=True)
    inside = _inside(trace, number)
    links, total = _links(view, number)
    facts = _facts(trace, number)
    return {
        "id": number,
        "name": event["name"] or "",
        "kind": event["kind"],
        "role": event["role"],
        "category": event["source_category"],
        "start_ns": event["start_ns"],
        "after_ns": event["start_ns"] - view.extent.start_ns,
        "dur_ns": event["dur_ns"],
        "self_ns": max(0, event["dur_ns"] - int(inside["dur_ns"].sum())),
        "children": len(inside),
        "step": event["step"],
        "track": event["track"],
        "depth": event["depth"],
        "row": row_of(view, event),
        "thread": thread_name(trace, event["track"]),
        "stack": _stack(trace, event["parent"]),
        "launch_stack": _launch_stack(trace, links),
        "facts": facts,
        "links": links,
        "links_total": total,
        "op": _op(trace, number, facts),
    }


def row_of(view: View, event: dict[str, Any]) -> int:
    """The row that shows the event."""
    found = view.store.row_of(event["id"], event["track"], event["depth"], event["start_ns"])
    return found if found is not None else 0


def thread_name(trace: Trace, track: int) -> str:
    """What the track is called."""
    rows = trace.tracks.filter(pl.col("id") == track)
    if rows.is_empty():
        return ""
    row = rows.row(0, named=True)
    words = [row["process"], row["thread"] or row["tid"]]
    return " · ".join(str(word) for word in words if word)


def _inside(trace: Trace, number: int) -> pl.DataFrame:
    """The direct children: they come after their parent on the same track, and before its end."""
    events = trace.events
    end = int(events["start_ns"][number]) + int(events["dur_ns"][number])
    last = number + 1 + _run(events, number, end)
    part = events.slice(number + 1, last - number - 1).select("parent", "dur_ns")
    return part.filter(pl.col("parent") == number)


def _run(events: pl.DataFrame, number: int, end: int) -> int:
    """How many events after this one begin on its track before the moment."""
    track = int(events["track"][number])
    after = int(events["track"].search_sorted(track, side="right"))
    starts = events["start_ns"].slice(number + 1, after - number - 1)
    return int(starts.search_sorted(end, side="left"))


def _stack(trace: Trace, parent: int | None) -> list[dict[str, Any]]:
    """What encloses it, outermost first."""
    found: list[dict[str, Any]] = []
    while parent is not None and len(found) < DEEPEST_STACK:
        row = trace.events.row(parent, named=True)
        found.append({"id": parent, "name": row["name"] or "", "kind": row["kind"]})
        parent = row["parent"] if row["parent"] is None or row["parent"] < parent else None
    return found[::-1]


def _launch_stack(trace: Trace, links: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Where on the host the work of a device was launched from."""
    launch = next((link for link in links if link["why"] == "launch" and link["direction"] == "from"), None)
    return _stack(trace, launch["id"]) if launch is not None else []


def _facts(trace: Trace, number: int) -> dict[str, dict[str, Any]]:
    found = {}
    for name in _TABLES:
        rows = rows_of_event(trace.tables[name], number)
        if len(rows):
            row = rows.row(0, named=True)
            found[name] = {key: _cut(value) for key, value in row.items() if value is not None}
    return found


def rows_of_event(table: pl.DataFrame, number: int) -> pl.DataFrame:
    """Tables come by event, except for `memory`."""
    return table.filter(pl.col("event") == number) if len(table) else table


def _op(trace: Trace, number: int, facts: dict[str, dict[str, Any]]) -> dict[str, Any] | None:
    """The op that a kernel belongs to, or that encloses the event."""
    op = facts.get("kernels", {}).get("op")
    if op is None:
        op = _enclosing_op(trace, number)
    if op is None:
        return None
    return {"id": op, "name": str(trace.events["name"][op] or "")}


def _enclosing_op(trace: Trace, number: int) -> int | None:
    event: int | None = number
    for _ in range(DEEPEST_STACK):
        if event is None:
            return None
        if trace.events["kind"][event] == "op":
            return event
        event = trace.events["parent"][event]
    return None


def _links(view: View, number: int) -> tuple[list[dict[str, Any]], int]:
    """What it leads to and what leads to it, and how many there are."""
    links = view.trace.links
    if links.is_empty():
        return [], 0
    first, last = (int(links["from"].search_sorted(number, side=side)) for side in ("left", "right"))
    ahead = links.slice(first, last - first).select(event="to", why="why", direction=pl.lit("to"))
    back = links.filter(pl.col("to") == number).select(event="from", why="why", direction=pl.lit("from"))
    both = pl.concat([ahead, back])
    return [_link(view, **row) for row in both.head(MOST_LINKS).iter_rows(named=True)], len(both)


def _link(view: View, event: int, why: str, direction: str) -> dict[str, Any]:
    other = view.trace.events.row(event, named=True)
    return {
        "why": why,
        "direction": direction,
        "id": event,
        "name": other["name"] or "",
        "track": other["track"],
        "row": row_of(view, other),
        "after_ns": other["start_ns"] - view.extent.start_ns,
        "dur_ns": other["dur_ns"],
    }


def event_arguments(trace: Trace, number: int) -> dict[str, Any]:
    """What the file said beyond the columns, cut where it is absurdly long."""
    found = trace.arguments(number)
    return {str(name): _cut(found[name]) for name in list(found)[:MOST_ARGUMENTS]}


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > LONGEST_VALUE:
        return f"{value[:LONGEST_VALUE]}… ({len(value):,} characters)"
    if isinstance(value, bytes):
        return value.decode(errors="replace")[:LONGEST_VALUE]
    if isinstance(value, float) and value != value:
        return None
    return value
