"""A memory snapshot as rows of the report."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.analysis.host.place import Place
from stepscope.analysis.snapshot.culprit import name_culprits
from stepscope.analysis.snapshot.explain import Explained
from stepscope.reports.columns import capped
from stepscope.reports.model.memory_snapshot import (
    CulpritRow,
    HeldRow,
    KeptRow,
    KindRow,
    MemorySnapshot,
    PinRow,
    SnapshotPeak,
)


def describe_snapshot(found: Explained, rank: int, limit: int) -> MemorySnapshot:
    """One device, with at most `limit` rows in its lists."""
    pieces = found.fragments
    culprits = name_culprits(found)
    return MemorySnapshot(
        device=found.device,
        rank=rank,
        failed=found.failed,
        asked_bytes=found.asked,
        failed_at=found.failed_at,
        allocated_bytes=found.allocated,
        reserved_bytes=pieces.reserved,
        cached_bytes=pieces.cached,
        largest_free_bytes=pieces.largest_free,
        segments=pieces.segments,
        pinned_segments=pieces.pinned_segments,
        pinned_free_bytes=pieces.pinned_free,
        known_share=round(found.known_share, 4),
        kinds=_list_kinds(found),
        lines=[_held(row) for row in capped(found.by_line, limit).iter_rows(named=True)],
        lines_total=len(found.by_line),
        culprits=[
            CulpritRow(cause=each.cause, bytes=each.bytes, text=each.text, where=each.where)
            for each in culprits[: limit or len(culprits)]
        ],
        kept=[
            KeptRow(
                where=Place(each.file, each.line, each.function),
                kind=each.kind,
                bytes=each.bytes,
                passes=each.passes,
                bytes_per_pass=each.bytes_per_pass,
            )
            for each in found.kept
        ],
        pins=[_pin(row) for row in capped(pieces.pins, limit).iter_rows(named=True)],
        changes=found.changes,
        peak=_describe_peak(found, limit),
    )


def _describe_peak(found: Explained, limit: int) -> SnapshotPeak | None:
    """None where what the snapshot holds is the peak."""
    if found.peak_bytes <= found.allocated:
        return None
    kinds = found.at_peak.group_by("kind").agg(pl.col("bytes", "blocks").sum())
    lines = capped(found.at_peak, limit).with_columns(
        inner_file=pl.lit(None), inner_line=pl.lit(None), inner_function=pl.lit(None)
    )
    return SnapshotPeak(
        bytes=found.peak_bytes,
        before_ns=found.peak_before_ns,
        kinds=[KindRow(**row) for row in kinds.sort("bytes", "kind", descending=[True, False]).to_dicts()],
        lines=[_held(row) for row in lines.to_dicts()],
    )


def _list_kinds(found: Explained) -> list[KindRow]:
    rows = [KindRow(**row) for row in found.by_kind.iter_rows(named=True)]
    cached = found.fragments.cached
    return [*rows, KindRow(kind="cached", bytes=cached, blocks=0)] if cached else rows


def _held(row: dict[str, Any]) -> HeldRow:
    where, inner = _place(row, "site"), _place(row, "inner")
    return HeldRow(
        kind=row["kind"],
        bytes=row["bytes"],
        blocks=row["blocks"],
        where=where,
        inner=inner if inner != where else None,
    )


def _pin(row: dict[str, Any]) -> PinRow:
    return PinRow(where=_place(row, "site"), bytes=row["bytes"], segments=row["segments"], holds=row["holds"])


def _place(row: dict[str, Any], prefix: str) -> Place | None:
    if row[f"{prefix}_file"] is None:
        return None
    return Place(row[f"{prefix}_file"], int(row[f"{prefix}_line"] or 0), row[f"{prefix}_function"] or "")
