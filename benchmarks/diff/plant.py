"""Plants a slower op into a recorded Kineto profile: its kernels take longer, and what comes after them begins later."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Event = dict[str, Any]
USUAL_GAP_US = 5.0  # between two kernels in a full queue: it stays; a longer one was the host's, and shrinks
_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")


def slower_op(source: Path, target: Path, op: str, factor: float) -> float:
    """Write the profile with every kernel that `op` launched `factor` times as long; returns what was added, in µs."""
    with gzip.open(source, "rt") as file:
        whole = json.load(file)
    events: list[Event] = whole["traceEvents"]
    chosen = _launched_by(events, op)
    added = 0.0
    for stream in _streams(events):
        was_free = free = float("-inf")
        for event in sorted(stream, key=lambda each: float(each["ts"])):
            begin = float(event["ts"])
            gap = min(max(begin - was_free, 0.0), USUAL_GAP_US)
            was_free = begin + event["dur"]
            if id(event) in chosen:
                added += event["dur"] * (factor - 1)
                event["dur"] *= factor
            event["ts"] = max(begin, free + gap)
            free = event["ts"] + event["dur"]
    with gzip.open(target, "wt", 6) as file:
        json.dump(whole, file)
    return added


def _launched_by(events: Iterable[Event], op: str) -> set[int]:
    """Kernels whose external id is that of an op of this name."""
    named = {
        each["args"].get("External id")
        for each in events
        if each.get("name") == op and each.get("cat") == "cpu_op" and "args" in each
    }
    return {
        id(each)
        for each in events
        if each.get("cat") == "kernel" and each["args"].get("External id") in named
    }


def _streams(events: Iterable[Event]) -> Iterable[list[Event]]:
    found: dict[tuple[Any, Any], list[Event]] = {}
    for each in events:
        if each.get("cat") in _DEVICE:
            found.setdefault((each["pid"], each["tid"]), []).append(each)
    return found.values()
