"""A bound on the devices of one trace: every analysis looks at all events once for each device.

A file may claim as many devices as it has events. No process drives more than a few dozen: beyond that the busiest are
kept as devices, and the tracks of the others are only shown.
"""

from __future__ import annotations

import polars as pl

from stepscope.trace.problems import Problem, Problems

MOST_DEVICES = 64


def bounded_tracks(tracks: pl.DataFrame, events: pl.DataFrame, problems: Problems) -> pl.DataFrame:
    """The tracks, those of too many devices without their device."""
    if tracks["device"].n_unique() <= MOST_DEVICES:
        return tracks
    busy = events.group_by("track").agg(pl.len()).rename({"track": "id"})
    known = tracks.select("id", "device").join(busy, on="id", how="left").drop_nulls("device")
    kept = _largest(known.group_by("device").agg(pl.col("len").sum()))
    gone = pl.col("device").is_not_null() & ~pl.col("device").is_in(kept.implode())
    _note(problems, "tracks", int(tracks.select(gone.sum()).item()))
    on_device = pl.col("what") == "device"
    return tracks.with_columns(
        pl.when(gone & on_device).then(pl.lit("derived")).otherwise(pl.col("what").cast(pl.String)).cast(tracks["what"].dtype).alias("what"),
        pl.when(~gone).then("device"),
    )  # fmt: skip


def bounded_memory(memory: pl.DataFrame, problems: Problems) -> pl.DataFrame:
    """The allocations, without those on too many devices."""
    if "device" not in memory.columns or memory["device"].n_unique() <= MOST_DEVICES:
        return memory
    kept = _largest(memory.drop_nulls("device").group_by("device").agg(pl.len()))
    rows = memory.filter(pl.col("device").is_null() | pl.col("device").is_in(kept.implode()))
    _note(problems, "allocations", len(memory) - len(rows))
    return rows


def _largest(devices: pl.DataFrame) -> pl.Series:
    ranked = devices.sort(pl.col("len").fill_null(0), pl.col("device"), descending=[True, False])
    return ranked["device"].head(MOST_DEVICES)


def _note(problems: Problems, what: str, count: int) -> None:
    detail = (
        f"{{count}} {what} are on further devices than the {MOST_DEVICES} busiest, which no process drives; "
        "they are left out of all figures."
    )
    fix = "The file is damaged, or several recordings were put into one. Record again."
    problems.add(Problem("too-many-devices", f"Too many devices ({what})", detail, fix, count=count))
