"""What makes up the peak of memory over time: each buffer that is live then, from its allocation to its release.

Of a compiled program time is the number of the instruction (XLA's buffer assignment has no clock), of an allocator it is nanoseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import polars as pl

from stepscope.analysis.memory import Recorded, timeline
from stepscope.analysis.xla.hlo_module import read_module
from stepscope.analysis.xla.memory import program_lives
from stepscope.analysis.xla.ops import programs_that_ran
from stepscope.trace.trace import Trace

_COLUMNS = ("begin", "end", "kind", "op", "scope", "bytes")


@dataclass(frozen=True)
class Lives:
    """`at_peak`: begin, end (null: never released), kind, op, scope, bytes, the largest first; `curve`: time and bytes in use."""

    unit: Literal["ns", "instruction"]
    at_peak: pl.DataFrame
    curve: pl.DataFrame
    peak_at: int | None


def lives_of_allocator(found: Recorded) -> Lives:
    """Of what an allocator recorded; without addresses no release is known, and nothing is listed."""
    rows = found.rows
    at = int(rows["time_ns"][int(rows["allocated"].arg_max() or 0)])
    freed = pl.col("freed_ns")
    live = found.lives.filter(pl.col("time_ns") <= at, freed.is_null() | (freed > at))
    named = live.rename({"time_ns": "begin", "freed_ns": "end"})
    kept = named if found.has_addresses else named.head(0)
    return Lives("ns", _largest(kept), timeline(rows).select("time_ns", "allocated"), at)


def lives_of_program(trace: Trace, device: int | None) -> Lives | None:
    """Of the largest program that ran on the device; None where the profile has no buffer assignment."""
    best: Lives | None = None
    most = 0
    for _, where, hlo in programs_that_ran(trace):
        if where != device:
            continue
        rows = program_lives(read_module(hlo))
        curve = _sum_over_time(rows)
        peak = curve["bytes"].max()
        if isinstance(peak, int) and peak > most:
            at = int(curve["time"][int(curve["bytes"].arg_max() or 0)])
            live = rows.filter(pl.col("begin") <= at, pl.col("end") >= at)
            best, most = Lives("instruction", _largest(live), curve, at), peak
    return best


def _largest(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select(_COLUMNS).sort("bytes", "begin", descending=[True, False])


def _sum_over_time(rows: pl.DataFrame) -> pl.DataFrame:
    """time and bytes in use after each change."""
    changes = pl.concat(
        [rows.select("bytes", time="begin"), rows.select(-pl.col("bytes"), time=pl.col("end") + 1)]
    )
    return (
        changes.group_by("time")
        .agg(pl.col("bytes").sum())
        .sort("time")
        .with_columns(pl.col("bytes").cum_sum())
    )
