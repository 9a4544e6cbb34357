"""The tables of what shows only between ranks: their clocks, and the collectives in which they waited longest."""

from __future__ import annotations

from typing import Any

from stepscope.reports.model.report import Collectives, Meeting
from stepscope.reports.tables.table import Column, Table, table

_CLOCKS = (
    Column("rank", "rank", "number"),
    Column("offset_ns", "clock ahead by", "ns"),
    Column("drift_ppm", "drift ppm", "number"),
    Column("residual_ns", "residual", "ns"),
    Column("error_ns", "error of the offset", "ns", minor=True),
    Column("anchors", "anchors", "count"),
)
_WORST = (
    Column("name", "operation", "name"),
    Column("group", "group", minor=True),
    Column("step", "step", "number"),
    Column("sequence", "number", "number", minor=True),
    Column("ranks", "ranks", "count"),
    Column("bytes", "bytes", "bytes"),
    Column("last_rank", "last to come", "number"),
    Column("late_ns", "behind next", "ns"),
    Column("skew_ns", "behind first", "ns"),
    Column("wait_ns", "mean wait", "ns"),
    Column("transfer_ns", "transfer", "ns"),
    Column("exposed_share", "exposed", "share", minor=True),
    Column("bus_gb_per_s", "bus GB/s", "rate"),
)


def rank_tables(found: Collectives) -> list[Table]:
    """Empty where ranks were not compared."""
    return [
        table("collectives_worst", "longest waits", _WORST, [_row(meeting) for meeting in found.worst]),
        table("collectives_clocks", "clocks", _CLOCKS, [clock for clock in found.clocks if clock.aligned]),
    ]


def _row(meeting: Meeting) -> dict[str, Any]:
    return {column.key: getattr(meeting, column.key) for column in _WORST}
