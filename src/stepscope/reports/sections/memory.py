"""Memory: a row per device of each rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from stepscope.analysis.context import RankContext
from stepscope.analysis.memory import DeviceMemory
from stepscope.analysis.options import Options
from stepscope.lazy import dataclass
from stepscope.reports.columns import capped
from stepscope.reports.model.memory_snapshot import MemorySnapshot
from stepscope.reports.model.report import LiveRow, Memory, MemoryDevice
from stepscope.reports.sections.section import Section
from stepscope.reports.snapshot import describe_snapshot


@dataclass(frozen=True)
class OfRank:
    """The devices whose memory the rank recorded, and those of its snapshot."""

    devices: list[MemoryDevice]
    snapshot: list[MemorySnapshot]


def of_rank(context: RankContext) -> OfRank:
    """The devices of one rank."""
    return OfRank(
        [_device(found, context) for found in context.memory],
        [describe_snapshot(found, context.rank, context.options.limit) for found in context.snapshots],
    )


def joined(ranks: Sequence[OfRank], options: Options) -> Mapping[str, Any]:
    """All devices of all ranks."""
    devices = [device for rank in ranks for device in rank.devices]
    snapshots = [device for rank in ranks for device in rank.snapshot]
    return {"memory": Memory(devices=devices, snapshot=snapshots)}


def _device(found: DeviceMemory, context: RankContext) -> MemoryDevice:
    figures = {name: getattr(found, name) for name in _FIGURES}
    kept = capped(found.at_peak, context.options.limit)
    return MemoryDevice(
        **figures,
        rank=context.rank,
        timeline=found.timeline.to_dicts(),
        at_peak=msgspec.convert(kept.to_dicts(), list[LiveRow]),
        at_peak_total=len(found.at_peak),
    )


_FIGURES = (
    "device", "device_kind", "source", "peak_bytes", "peak_at_ns", "reserved_peak", "capacity_bytes",
    "growth_bytes_per_step", "never_freed_bytes", "fragmentation", "known_share", "note",
)  # fmt: skip
SECTION = Section("memory", of_rank, joined)
