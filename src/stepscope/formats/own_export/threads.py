"""The processes and threads of a Chrome export: one thread for each lane of each track."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import polars as pl

from stepscope.lazy import dataclass


@dataclass(frozen=True)
class Thread:
    """One lane of one track under the made-up ids that the export gives it."""

    pid: int
    tid: int
    track: int
    lane: int
    process_name: str
    thread_name: str


def threads(
    tracks: pl.DataFrame, lanes_in_use: pl.DataFrame, before: int = 0, prefix: str = ""
) -> list[Thread]:
    """A thread per track, its further lanes behind it. `lanes_in_use` has track and lane.

    Ids begin after `before`; names of processes with `prefix`.
    """
    lanes: dict[int, list[int]] = {}
    for track, lane in lanes_in_use.sort("track", "lane").rows():
        lanes.setdefault(track, []).append(lane)
    nameless = [dict.fromkeys(tracks.columns) | {"id": track} for track in lanes if track not in tracks["id"]]
    rows = [*tracks.to_dicts(), *nameless]
    owners = list(dict.fromkeys((row["process"], row["pid"]) for row in rows))
    pids = {owner: number for number, owner in enumerate(owners, before + 1)}
    # Numbered after all processes: a thread that has its process's number would count as its main thread.
    tid = before + len(owners)
    found = []
    for row in rows:
        for lane in [0, *(each for each in lanes.get(row["id"], []) if each)]:
            tid += 1
            pid = pids[(row["process"], row["pid"])]
            process = prefix + _process_name(row)
            found.append(Thread(pid, tid, row["id"], lane, process, _thread_name(row, lane)))
    return found


def frame(found: list[Thread]) -> pl.DataFrame:
    """Where each lane of each track is: track, lane, pid, tid and its name."""
    rows = [(each.track, each.lane, each.pid, each.tid, each.thread_name) for each in found]
    schema = {
        "track": pl.UInt32,
        "lane": pl.UInt32,
        "pid": pl.Int64,
        "tid": pl.Int64,
        "thread_name": pl.String,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def metadata(found: list[Thread]) -> Iterator[str]:
    """The events that name and order them, as JSON."""
    told: set[int] = set()
    for place, each in enumerate(found):
        if each.pid not in told:
            told.add(each.pid)
            yield _event("process_name", each.pid, 0, {"name": each.process_name})
            yield _event("process_sort_index", each.pid, 0, {"sort_index": each.pid})
        yield _event("thread_name", each.pid, each.tid, {"name": each.thread_name})
        yield _event("thread_sort_index", each.pid, each.tid, {"sort_index": place})


def _event(name: str, pid: int, tid: int, args: dict[str, Any]) -> str:
    event = {"ph": "M", "name": name, "pid": pid, "tid": tid, "ts": 0, "args": args}
    return msgspec.json.encode(event).decode()


def _process_name(row: dict[str, Any]) -> str:
    name, pid = row["process"] or "process", row["pid"] or ""
    return name if not pid or pid in name else f"{name} ({pid})"


def _thread_name(row: dict[str, Any], lane: int) -> str:
    name = (
        row["thread"] or (f"stream {row['stream']}" if row["stream"] is not None else row["tid"]) or "thread"
    )
    return f"{name} (overlap {lane})" if lane else name
