"""What to call the memory of a device, which to look at first, and what is to be said of several alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stepscope.profiles.ranks import spans
from stepscope.reports.model.memory_snapshot import MemorySnapshot
from stepscope.reports.model.report import MemoryDevice, Report


def where(report: Report, found: MemoryDevice) -> str:
    """What to call the memory of a device, or of the host."""
    name = memory_of(found)
    return f"{name} of rank {found.rank}" if len(report.profile.ranks) > 1 else name


def memory_of(found: MemoryDevice) -> str:
    """The same without the rank."""
    number = "" if found.device is None or found.device_kind == "cpu" else f" {found.device}"
    program = " program" if found.source == "hlo" else ""
    return ("host" if found.device_kind == "cpu" else found.device_kind) + number + program


def fullness(found: MemoryDevice) -> tuple[bool, float, int]:
    """The fullest device is the one to look at: by what it has, else by what it took. The host comes last."""
    peak = found.peak_bytes or 0
    return found.device_kind != "cpu", peak / found.capacity_bytes if found.capacity_bytes else 0.0, peak


def fullest(devices: Sequence[MemorySnapshot]) -> MemorySnapshot:
    """The device of a snapshot to look at: where a request failed, else that which held most at its peak."""

    def held(device: MemorySnapshot) -> tuple[bool, int]:
        return device.failed, device.allocated_bytes if device.peak is None else device.peak.bytes

    return max(devices, key=held)


def notes(report: Report) -> Iterator[tuple[str, str]]:
    """What is to be said of each memory; what several ranks have alike is said once."""
    ranks: dict[tuple[str, str], list[int]] = {}
    for found in report.memory.devices:
        if found.note:
            ranks.setdefault((memory_of(found), found.note), []).append(found.rank or 0)
    for (name, note), alike in ranks.items():
        yield f"{name}{_of_ranks(report, sorted(set(alike)))}", note


def _of_ranks(report: Report, ranks: list[int]) -> str:
    if len(report.profile.ranks) < 2:
        return ""
    return f" of rank{'s' if len(ranks) > 1 else ''} {spans(ranks)}"
