"""Two clocks: wall time to line workers up, and `perf_counter`, which never jumps, to measure."""

from __future__ import annotations

import os
import time
from typing import Any

_TRIES = 5
_IMPORTED_NS = time.time_ns()


def both() -> dict[str, int]:
    """The same moment on both clocks, as nearly as a few tries get."""
    best: tuple[int, int, int] | None = None
    for _ in range(_TRIES):
        before = time.perf_counter_ns()
        unix = time.time_ns()
        after = time.perf_counter_ns()
        if best is None or after - before < best[0]:
            best = after - before, unix, (before + after) // 2
    assert best is not None
    return {"unix_ns": best[1], "perf_counter_ns": best[2]}


def compared(start: dict[str, int], end: dict[str, int]) -> dict[str, Any]:
    """How the clocks differ, and how much that changed over the window."""
    offsets = [moment["unix_ns"] - moment["perf_counter_ns"] for moment in (start, end)]
    return {"start": start, "end": end, "offset_ns": offsets[0], "drift_ns": offsets[1] - offsets[0]}


def process_start_ticks() -> int:
    """When this process began, as the system counts: with its number, it identifies the process."""
    with open("/proc/self/stat", "rb") as file:  # noqa: PTH123 (pathlib is not needed otherwise)
        return int(file.read().rpartition(b")")[2].split()[19])


def process_start_unix_ns() -> int:
    """When this process began, or a moment after it."""
    try:
        ticks = process_start_ticks()
        with open("/proc/uptime", "rb") as file:  # noqa: PTH123
            up = float(file.read().split()[0])
        age = up - ticks / os.sysconf("SC_CLK_TCK")
        return time.time_ns() - int(age * 1e9)
    except (OSError, ValueError, IndexError, AttributeError):
        return _IMPORTED_NS
