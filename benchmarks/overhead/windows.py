"""Windows of recorded steps, taken in turns: the framework's own profiler, and ours with the same options."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

STEPS = 20
ROUNDS = 11
# Fewer would measure the first steps of a window, in which collectors still make buffers.
LEFT_OUT = 3

Step = Callable[[], object]
# Opens a window; what it gives is called at the end of each step.
Window = Callable[[], AbstractContextManager[Step]]


def in_turns(step: Step, own: Window, ours: Window) -> dict[str, Any]:
    """Medians of a step's time without a profiler, under its own and under ours, in nanoseconds, and our ratio to its own."""
    bare: list[float] = []
    times: dict[str, list[float]] = {"own": [], "ours": []}
    for round_number in range(ROUNDS):
        bare.append(_median(step, lambda: None))
        order = [("own", own), ("ours", ours)]
        for name, window in order if round_number % 2 else order[::-1]:
            with window() as ended:
                times[name].append(_median(step, ended))
    pairs = [ours_ns / own_ns for own_ns, ours_ns in zip(times["own"], times["ours"], strict=True)]
    return {
        "bare_ns": statistics.median(bare),
        "own_ns": statistics.median(times["own"]),
        "ours_ns": statistics.median(times["ours"]),
        "ratio": statistics.median(pairs),
    }


def _median(step: Step, ended: Step) -> float:
    found = []
    for _ in range(STEPS):
        start = time.perf_counter_ns()
        step()
        ended()
        found.append(time.perf_counter_ns() - start)
    # The last call of `ended` may close the window.
    return statistics.median(found[LEFT_OUT:-1])
