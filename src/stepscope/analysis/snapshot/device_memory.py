"""A device of a memory snapshot in the same figures as any other recorded memory."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.memory import DeviceMemory, timeline
from stepscope.analysis.snapshot.explain import Explained
from stepscope.trace.trace import Trace

_NO_HISTORY = "The snapshot has no history: the state when it was taken is all that is known."


def memory_of_snapshot(trace: Trace, found: Explained) -> DeviceMemory:
    """The curve of the history, and what was live at its peak."""
    rows = trace.memory.filter(pl.col("device") == found.device).with_columns(
        allocated="total_allocated", reserved="total_reserved"
    )
    peak_at = rows["time_ns"][rows["allocated"].arg_max() or 0] if len(rows) else None
    reserved = max(found.fragments.reserved, int(rows["reserved"].max() or 0) if len(rows) else 0)  # type: ignore[arg-type]
    place = pl.format("{}:{}", pl.col("site_file").str.extract(r"([^/\\\\]+)$"), "site_line")
    known = int(found.at_peak.filter(pl.col("kind") != "unknown")["bytes"].sum())
    return DeviceMemory(
        device=found.device,
        device_kind="gpu",
        source="snapshot",
        peak_bytes=found.peak_bytes,
        peak_at_ns=peak_at,
        reserved_peak=reserved,
        capacity_bytes=None,
        timeline=timeline(rows),
        at_peak=found.at_peak.select("kind", op=place, scope="site_function", bytes="bytes"),
        growth_bytes_per_step=None,
        never_freed_bytes=None,
        fragmentation=round(1 - found.allocated / found.fragments.reserved, 4)
        if found.fragments.reserved >= found.allocated > 0
        else None,
        known_share=round(known / found.peak_bytes, 4) if found.peak_bytes else None,
        note="" if len(rows) else _NO_HISTORY,
    )
