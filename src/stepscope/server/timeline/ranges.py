"""Totals of an interval on some tracks: by name, by track, and how busy the devices were; and the interval for other tools."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.native.spans.sets import total, union
from stepscope.server.timeline.alignment import own_times
from stepscope.server.timeline.details import thread_name
from stepscope.server.timeline.pivot import pivot, steps_between
from stepscope.server.timeline.view import View
from stepscope.trace.columns import buffer
from stepscope.trace.part import part_of
from stepscope.trace.trace import Trace

MOST_NAMES = 500
_WORK = ("kernel", "copy", "memset")


def totals(view: View, start: int, end: int, tracks: list[int]) -> dict[str, Any]:
    """Of the events that reach into the time from start to end, each cut to it."""
    events = _cut(view.trace, start, end, tracks)
    names = pivot(view, events, "name")
    return {
        "events": len(events),
        "steps": steps_between(view, start, end),
        "names": names.head(MOST_NAMES).to_dicts(),
        "names_total": len(names),
        "tracks": _by_track(view.trace, events, end - start),
        "devices": _devices(view.trace, start, end),
    }


def groups(view: View, start: int, end: int, tracks: list[int], by: str) -> dict[str, Any]:
    """The same events by category or by module."""
    found = pivot(view, _cut(view.trace, start, end, tracks), by)
    return {"names": found.head(MOST_NAMES).to_dicts(), "names_total": len(found)}


def cut_out(view: View, start: int, end: int, tracks: list[int]) -> Trace:
    """The events that reach into the range, whole, as a trace of their own."""
    ids = _cut(view.trace, start, end, tracks)["id"].sort()
    return part_of(view.trace, ids, start, end)


def condition(view: View, start: int, end: int, tracks: list[int]) -> str:
    """The WHERE of a query that gives exactly the events of the range."""
    own = [start, end] if view.shown is None else own_times(view.run, view.rank, view.shown, [start, end])
    words = [f"start_ns < {own[1]} AND (start_ns >= {own[0]} OR start_ns + dur_ns > {own[0]})"]
    known = view.trace.events["track"].unique()
    if len(known.filter(known.is_in(tracks))) < len(known):
        words.append(f"track IN ({', '.join(map(str, tracks)) or 'NULL'})")
    if len(view.run.profile.ranks) > 1:
        words.insert(0, f"rank = {view.rank}")
    return " AND ".join(words)


def _cut(trace: Trace, start: int, end: int, tracks: list[int]) -> pl.DataFrame:
    """id, parent, track, name, kind, start_ns, ns: a slice of the table for each track, cut to the time."""
    events = trace.events
    edges = pl.Series([*tracks, *(track + 1 for track in tracks)], dtype=pl.UInt32)
    places = events["track"].search_sorted(edges, side="left").to_list()
    found = [_NOTHING]
    for first, last in zip(places[: len(tracks)], places[len(tracks) :], strict=True):
        until = int(events["start_ns"].slice(first, last - first).search_sorted(end, side="left"))
        part = events.slice(first, until).filter(
            (pl.col("start_ns") + pl.col("dur_ns") > start) | (pl.col("start_ns") >= start)
        )
        begin = pl.max_horizontal("start_ns", pl.lit(start))
        finish = pl.min_horizontal(pl.col("start_ns") + pl.col("dur_ns"), pl.lit(end))
        found.append(
            part.select(
                "id",
                "parent",
                "track",
                "name",
                pl.col("kind").cast(pl.String),
                start_ns=begin,
                ns=(finish - begin).clip(0),
            )
        )
    return pl.concat(found, how="vertical_relaxed")


_NOTHING = pl.DataFrame(
    schema={"id": pl.UInt32, "parent": pl.UInt32, "track": pl.UInt32, "name": pl.String, "kind": pl.String, "start_ns": pl.Int64, "ns": pl.Int64}
)  # fmt: skip


def _by_track(trace: Trace, events: pl.DataFrame, length: int) -> list[dict[str, Any]]:
    """busy_ns: the time in which the track had any event, counted once."""
    found = []
    for (track,), part in events.group_by("track", maintain_order=True):
        busy = covered(part)
        found.append(
            {
                "track": track,
                "title": thread_name(trace, track),
                "count": len(part),
                "busy_ns": busy,
                "busy_share": busy / max(1, length),
            }
        )
    return found


def covered(spans: pl.DataFrame) -> int:
    """How long any of the spans (start_ns, ns) lasted."""
    ordered = spans.select("start_ns", end_ns=pl.col("start_ns") + pl.col("ns")).sort("start_ns")
    return int(total(*union(buffer(ordered["start_ns"]), buffer(ordered["end_ns"]))))


def _devices(trace: Trace, start: int, end: int) -> list[dict[str, Any]]:
    """Each device's busy share: kernels, copies and memsets on any of its streams."""
    streams = trace.tracks.filter((pl.col("what") == "device") & pl.col("device").is_not_null())
    found = []
    for (kind, device), rows in streams.group_by("device_kind", "device", maintain_order=True):
        work = _cut(trace, start, end, sorted(rows["id"].to_list())).filter(pl.col("kind").is_in(_WORK))
        title = f"{str(kind or 'device').upper()} {device}"
        share = covered(work) / max(1, end - start)
        found.append({"device": device, "title": title, "busy_share": share})
    return sorted(found, key=lambda each: str(each["title"]))
