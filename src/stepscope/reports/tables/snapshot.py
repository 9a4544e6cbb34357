"""The tables of a memory snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stepscope.analysis.host.place import Place
from stepscope.analysis.snapshot.words import at, call
from stepscope.reports.model.memory_snapshot import MemorySnapshot
from stepscope.reports.model.report import Report
from stepscope.reports.tables.table import Column, Table, table

_DEVICE = Column("device", "device", "number")
_RANK = Column("rank", "rank", "number")
_BYTES = Column("bytes", "bytes", "bytes")
_KINDS = (_RANK, _DEVICE, Column("kind", "kind"), Column("blocks", "blocks", "count"), _BYTES)
_LINES = (
    _RANK,
    _DEVICE,
    Column("kind", "kind"),
    Column("line", "line", "name"),
    Column("inner", "inside", "name", minor=True),
    Column("blocks", "blocks", "count"),
    _BYTES,
)
_KEPT = (
    _RANK,
    _DEVICE,
    Column("line", "line", "name"),
    Column("kind", "kind"),
    Column("passes", "passes", "count"),
    Column("bytes_per_pass", "a pass", "bytes"),
    _BYTES,
)
_PINS = (
    _RANK,
    _DEVICE,
    Column("line", "line", "name"),
    Column("segments", "segments", "count"),
    _BYTES,
    Column("holds", "free there", "bytes"),
)
_CHANGES = (_RANK, _DEVICE, Column("change", "change"), _BYTES, Column("fits", "suffices"))


def snapshot_tables(report: Report) -> Iterator[Table]:
    """By kind, by line, what is kept, what pins segments, and what would make room; none without a snapshot."""
    devices = report.memory.snapshot
    if not devices:
        return
    yield table("snapshot_kinds", "memory by kind", _KINDS, _rows(devices, "kinds", _kind))
    total = sum(max(one.lines_total, len(one.lines)) for one in devices)
    yield table("snapshot_lines", "memory by line", _LINES, _rows(devices, "lines", _line), total=total)
    yield table("snapshot_kept", "kept from pass to pass", _KEPT, _rows(devices, "kept", _kept))
    yield table(
        "snapshot_pins", "what stays in segments with free pieces", _PINS, _rows(devices, "pins", _pin)
    )
    yield table("snapshot_changes", "what would make room", _CHANGES, _rows(devices, "changes", _change))


def _rows(devices: list[MemorySnapshot], name: str, describe: Any) -> list[dict[str, Any]]:
    return [
        {"rank": one.rank, "device": one.device, **describe(row)}
        for one in devices
        for row in getattr(one, name)
    ]


def _at(place: Place | None) -> str | None:
    return None if place is None else at(place)


def _kind(row: Any) -> dict[str, Any]:
    return {"kind": call(row.kind), "blocks": row.blocks, "bytes": row.bytes}


def _line(row: Any) -> dict[str, Any]:
    return {**_kind(row), "line": _at(row.where), "inner": _at(row.inner)}


def _kept(row: Any) -> dict[str, Any]:
    figures = {key: getattr(row, key) for key in ("passes", "bytes_per_pass", "bytes")}
    return {"line": at(row.where), "kind": call(row.kind), **figures}


def _pin(row: Any) -> dict[str, Any]:
    return {"line": _at(row.where), "segments": row.segments, "bytes": row.bytes, "holds": row.holds}


def _change(row: Any) -> dict[str, Any]:
    where = f" ({at(row.where)})" if row.where is not None else ""
    return {"change": row.text + where, "bytes": row.bytes, "fits": "yes" if row.fits else "no"}
