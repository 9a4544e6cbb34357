"""Tracks of a Kineto trace: threads by process, streams by device, annotations laid over streams."""

from __future__ import annotations

import re
from typing import Any

import polars as pl

from stepscope.formats.chrome.scan.columns import Identity, JsonEvents
from stepscope.formats.chrome.tracks import TrackTable

DEVICE_CATEGORIES = {
    "kernel": "gpu",
    "Kernel": "gpu",
    "gpu_memcpy": "gpu",
    "gpu_memset": "gpu",
    "Memcpy": "gpu",
    "Memset": "gpu",
    "mtia_ccp_events": "mtia",
    "hpu_op": "hpu",
}
_LAID_OVER = ("gpu_user_annotation", "cuda_sync", "cuda_event", "xpu_sync")
_OUTSIDE = ("Spans", "Traces", "")
_COUNTED_DEVICE = re.compile(r"GPU (\d{1,9}) Counters$")


def kineto_tracks(found: JsonEvents, accelerator: str) -> tuple[TrackTable, pl.Series]:
    """The tracks, and the track of each event: what only spans device work moves to a track of its own."""
    table = TrackTable(found)
    by_track = found.events.group_by("track", "category").len()
    categories: dict[int, set[str]] = {}
    for track, category, _ in by_track.iter_rows():
        categories.setdefault(track, set()).add(category or "")
    moves: list[tuple[int, str, int]] = []
    for track, present in sorted(categories.items()):
        pid, tid = found.tracks[track]
        device = present & DEVICE_CATEGORIES.keys()
        laid_over = present & set(_LAID_OVER)
        if device or laid_over:
            kind = next((DEVICE_CATEGORIES[c] for c in sorted(device)), "gpu")
            _set_stream(table, track, pid, tid, accelerator if kind == "gpu" else kind)
            if not device:
                table.set(track, what="derived")
            else:
                moves += [
                    (track, category, table.add(track, what="derived", thread=_over(table, track, category)))
                    for category in sorted(laid_over)
                ]
        elif pid in _OUTSIDE:
            table.set(track, what="derived")
        elif isinstance(pid, str) and (counted := _COUNTED_DEVICE.match(pid)):
            table.set(track, what="counter", device=int(counted[1]), device_kind=accelerator)
    return table, _moved(found.events, moves)


def _over(table: TrackTable, track: int, category: str) -> str:
    pid, tid = table.scanned[track]
    what = "annotations" if category == "gpu_user_annotation" else "waits"
    return f"{table.names.threads.get((pid, tid)) or f'stream {tid}'} ({what})"


def _set_stream(table: TrackTable, track: int, pid: Identity, tid: Identity, kind: str) -> None:
    table.set(
        track,
        what="device",
        device=pid if isinstance(pid, int) and -(2**31) <= pid < 2**31 else None,
        device_kind=kind,
        stream=tid if isinstance(tid, int) else None,
        process=table.names.labels.get(pid) or table.names.processes.get(pid),
    )


def _moved(events: pl.DataFrame, moves: list[tuple[int, str, int]]) -> pl.Series:
    if not moves:
        return events["track"]
    target: Any = pl.when(False).then(pl.lit(0, dtype=pl.UInt32))
    for track, category, new in moves:
        here = (pl.col("track") == track) & (pl.col("category") == category)
        target = target.when(here).then(pl.lit(new, dtype=pl.UInt32))
    return events.select(target.otherwise(pl.col("track")).alias("track")).to_series()
