"""Memory: a row per device of each rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from stepscope.analysis.context import RankContext
from stepscope.analysis.memory import DeviceMemory
from stepscope.analysis.options import Options
from stepscope.reports.columns import capped
from stepscope.reports.model.report import LiveRow, Memory, MemoryDevice
from stepscope.reports.sections.section import Section


def of_rank(context: RankContext) -> list[MemoryDevice]:
    """The devices whose memory the rank recorded."""
    return [_device(found, context) for found in context.memory]


def joined(ranks: Sequence[list[MemoryDevice]], options: Options) -> Mapping[str, Any]:
    """All devices of all ranks."""
    return {"memory": Memory(devices=[device for rank in ranks for device in rank])}


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
