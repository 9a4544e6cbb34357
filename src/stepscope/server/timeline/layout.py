"""Which tracks there are, in groups: the devices first, then the processes of the host, each with its busiest first."""

from __future__ import annotations

from typing import Any

import msgspec
import polars as pl

from stepscope.server.timeline.store import Row, Store
from stepscope.trace.trace import Trace


class TrackShown(msgspec.Struct):
    """A track with events: its rows are `row` to `row + rows - 1` of the store."""

    id: int
    title: str
    detail: str
    what: str
    row: int
    rows: int
    events: int


class GroupShown(msgspec.Struct):
    """Tracks under one heading. `device` is null for a process; `merged` is the row that shows all streams of a device as one."""

    id: str
    title: str
    what: str
    device: int | None
    tracks: list[TrackShown]
    merged: int | None = None


def groups_of(trace: Trace, store: Store) -> list[GroupShown]:
    """All tracks that have events."""
    spans = _spans(store.rows)
    marking = _marking_track(trace)
    found: dict[str, GroupShown] = {}
    tracks = trace.tracks.filter(pl.col("id").is_in(list(spans))).sort("id")
    for row in tracks.iter_rows(named=True):
        group = _group(trace, row)
        found.setdefault(group.id, group).tracks.append(_track(row, *spans[row["id"]], marking))
    groups = sorted(found.values(), key=_group_order)
    for group in groups:
        group.tracks.sort(key=lambda track: (track.what == "derived", track.id != marking, -track.events))
    for at, group in enumerate(group for group in groups if group.device is not None):
        group.merged = at
    return groups


def _spans(rows: list[Row]) -> dict[int, tuple[int, int, int]]:
    """For each track its first row, how many rows it has, and how many events."""
    found: dict[int, tuple[int, int, int]] = {}
    for number, row in enumerate(rows):
        first, count, events = found.get(row.track, (number, 0, 0))
        found[row.track] = (first, count + 1, events + row.events)
    return found


def _marking_track(trace: Trace) -> int | None:
    """The host thread that marks the steps."""
    hosts = trace.tracks.filter(pl.col("what") == "host")["id"]
    events = trace.events
    marks = events.lazy().filter(pl.col("role") == "step").select("track").collect()["track"]
    found = marks.filter(marks.is_in(hosts.implode()))
    return int(found[0]) if len(found) else None


def _group(trace: Trace, track: dict[str, Any]) -> GroupShown:
    device, what = track["device"], track["what"]
    if device is not None:
        kind = (track["device_kind"] or "device").upper()
        title = f"{kind} {device}"
        model = _model(trace, device)
        return GroupShown(f"device {device}", f"{title} · {model}" if model else title, "device", device, [])
    if what == "derived" and not track["process"]:
        return GroupShown("other", "Other", "derived", None, [])
    process, pid = track["process"], track["pid"]
    title = process or (f"process {pid}" if pid else "Host")
    named = f"{title} ({pid})" if process and pid and pid not in process else title
    return GroupShown(f"process {pid or process}", named, what, None, [])


def _model(trace: Trace, device: int) -> str:
    for each in trace.info.devices:
        if each.get("id") == device and each.get("name"):
            return str(each["name"])
    return ""


def _group_order(group: GroupShown) -> tuple[int, int, int]:
    place = {"device": 0, "host": 1}.get(group.what, 2)
    return place, group.device or 0, -sum(track.events for track in group.tracks)


def _track(track: dict[str, Any], row: int, rows: int, events: int, marking: int | None) -> TrackShown:
    name = track["thread"] or track["process"] or track["tid"] or f"track {track['id']}"
    title = f"main thread · {name}" if track["id"] == marking else name
    told = {"process": track["process"], "pid": track["pid"], "thread": name, "tid": track["tid"]}
    detail = ", ".join(f"{word} {value}" for word, value in told.items() if value)
    return TrackShown(track["id"], _short(title), detail, track["what"], row, rows, events)


def _short(title: str) -> str:
    """Without the long numbers that XPlane puts behind the names of threads."""
    name, slash, number = title.rpartition("/")
    return name if slash and len(number) > 9 and number.lstrip("-").isdigit() else " ".join(title.split())
