"""Which training step an event belongs to: by the marker that encloses it, or its launch."""

from __future__ import annotations

import polars as pl

from stepscope.native.spans import step_of_event
from stepscope.trace.columns import buffer, series

_NUMBER = r"(\d+)$"


def mark_steps(events: pl.DataFrame, tracks: pl.DataFrame, launches: pl.DataFrame) -> pl.DataFrame:
    """Fill `step`, and leave the role `step` to the markers that count.

    `events` is sorted and has id, track, name, role, start_ns, dur_ns and perhaps step (set by the reader on
    markers only); `launches` has from and to, as event ids.
    """
    events = _marker_roles(events, tracks)
    markers = _numbered(events)
    if markers.is_empty():
        return events.with_columns(step=pl.lit(None, dtype=pl.Int32))
    step, bits = step_of_event.by_time(
        buffer(events["start_ns"]),
        buffer(markers["start_ns"]),
        buffer(markers["end_ns"]),
        buffer(markers["number"]),
    )
    if len(launches):
        step, bits = step_of_event.by_launch(buffer(launches["from"]), buffer(launches["to"]), step, bits)
    return events.with_columns(series("step", step, pl.Int32, bits))


def _marker_roles(events: pl.DataFrame, tracks: pl.DataFrame) -> pl.DataFrame:
    """A marker seen on host and device is one step: the device's copy loses the role."""
    is_marker = events["role"] == "step"
    if not is_marker.any():
        return events
    host = tracks.filter(pl.col("what") == "host")["id"]
    on_host = is_marker & events["track"].is_in(host.implode())
    if not on_host.any() or on_host.sum() == is_marker.sum():
        return events
    copies = (is_marker & ~on_host).fill_null(False)
    return events.with_columns(role=pl.when(copies).then(None).otherwise(pl.col("role")))


def _numbered(events: pl.DataFrame) -> pl.DataFrame:
    """The markers in time order, each step once, with start, end and number (its own, else its rank in time)."""
    markers = events.filter(pl.col("role") == "step").sort("start_ns")
    if markers.is_empty():
        return markers
    own = pl.col("name").cast(pl.String).str.extract(_NUMBER).cast(pl.Int32, strict=False)
    given = pl.col("step") if "step" in markers.columns else pl.lit(None, dtype=pl.Int32)
    numbered = markers.select(
        "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns"), number=pl.coalesce(given, own)
    )
    if numbered["number"].null_count():
        return numbered.with_columns(number=pl.int_range(pl.len(), dtype=pl.Int32))
    return numbered
