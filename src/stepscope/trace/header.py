"""What a file says of itself as a whole, as far as it is possible: ranks, the size of the job, and times.

A header is a row like any other: an impossible value costs that value, and a problem reports it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stepscope.trace.problems import Problems, problem

if TYPE_CHECKING:
    from stepscope.trace.trace import TraceInfo

MOST_RANKS = 1_000_000
_LATEST_NS = 1 << 62
_SHOWN = 3
_LARGEST_FIGURE = 1 << 50
_FIGURES = (
    "totalGlobalMem", "memory_size", "numSms", "core_count", "computeMajor", "computeMinor", "compute_cap_major",
    "compute_cap_minor", "warpSize", "maxThreadsPerMultiprocessor", "sharedMemPerMultiprocessor", "regsPerMultiprocessor",
)  # fmt: skip


def checked(info: TraceInfo, problems: Problems) -> TraceInfo:
    """The same, without figures that no job and no device has."""
    wrong = {name: getattr(info, name) for name, possible in _possible(info).items() if not possible}
    of_devices = [(name, device[name]) for device in info.devices for name in _impossible(device)]
    if not wrong and not of_devices:
        return info
    found = [*wrong.items(), *of_devices]
    shown = ", ".join(f"{name} {_shown(value)}" for name, value in found[:_SHOWN])
    problems.add(
        problem(
            "bad-header",
            f"{{count}} values of the header were left out: {shown}{' …' if len(found) > _SHOWN else ''}.",
            count=len(found),
        )
    )
    nothing: dict[str, Any] = {
        "rank": None,
        "world_size": None,
        "base_unix_ns": 0,
        "clock_offset_ns": 0,
        "clock_drift": 0.0,
    }
    devices = [
        {name: value for name, value in device.items() if name not in _impossible(device)}
        for device in info.devices
    ]
    return replace(info, devices=devices, **{name: nothing[name] for name in wrong})


def _impossible(device: dict[str, Any]) -> list[str]:
    """The figures of a device, as PyTorch or XLA call them, that are not numbers."""
    found = [name for name in _FIGURES if name in device and not _is_figure(device[name])]
    return found if isinstance(device.get("id"), int | str | None) else [*found, "id"]


def _is_figure(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return value is None
    return 0 <= value < _LARGEST_FIGURE


def _possible(info: TraceInfo) -> dict[str, bool]:
    return {
        "rank": is_rank(info.rank),
        "world_size": info.world_size is None or 0 <= info.world_size <= MOST_RANKS,
        "base_unix_ns": abs(info.base_unix_ns) < _LATEST_NS,
        "clock_offset_ns": abs(info.clock_offset_ns) < _LATEST_NS,
        "clock_drift": math.isfinite(info.clock_drift) and abs(info.clock_drift) < 1,
    }


def is_rank(value: int | None) -> bool:
    """Whether a job can have this rank; None claims nothing."""
    return value is None or 0 <= value < MOST_RANKS


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= 24 else f"{text[:24]}…"
