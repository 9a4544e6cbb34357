"""What is being recorded in this process right now: one Profiler at most."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol


class Recording(Protocol):
    """A Profiler, as far as the rest of the process needs it: this module is imported by it."""

    @property
    def folder(self) -> Path:
        """Where it writes."""

    @property
    def number(self) -> int:
        """The step that runs."""

    @property
    def is_recording(self) -> bool:
        """Whether a window is open."""

    def step(self) -> None:
        """A step has ended."""

    def hear_on_step(self) -> None:
        """Call `on_step` at every step."""

    def give_way_to(self, other: Any) -> bool:
        """Stop, if another Profiler may take over."""

    def become_inert(self) -> None:
        """Record nothing more: this is a forked child."""


class Ring(Protocol):
    """Where annotations go, to survive the process."""

    def begin(self, kind: str, name: str, now_ns: int) -> int:
        """An event starts; its code ends it."""

    def end(self, code: int, now_ns: int) -> None:
        """It has ended."""

    def seen(self, kind: str, name: str, thread: int, start_ns: int, end_ns: int) -> None:
        """An event that has ended already."""


profiler: Recording | None = None
# Whether a window is open: annotations and ops are then counted, whoever records.
is_timing = False
# Who wants to hear that the job calls `stepscope.step()` while no Profiler runs: a launcher or listener.
first_step: Callable[[], None] | None = None
# Who wants to hear of every step of the Profiler that runs: a recording that was asked for from outside.
on_step: Callable[[int], None] | None = None
# Where annotations are kept while a window is open, in case that the process is killed.
ring: Ring | None = None
# Who records this process as long as no loop shows, and stops when a Profiler is about to open a window.
provisional: Callable[[Any], None] | None = None
# Makes an NVTX range; None unless someone asked for NVTX.
nvtx: Callable[[str], AbstractContextManager[Any]] | None = None

_MOST_NAMES = 1000
_phases: dict[str, list[int]] = {}
_ops: dict[str, dict[str, int]] = {}


def note_phase(name: str, duration_ns: int) -> None:
    """One call of an annotation or region."""
    known = _phases.get(name)
    if known is not None:
        known[0] += 1
        known[1] += duration_ns
    elif len(_phases) < _MOST_NAMES:
        _phases[name] = [1, duration_ns]


def note_op(name: str, host_ns: int, allocator_bytes: int | None, device_bytes: int | None) -> None:
    """One call of a custom op. The two figures of memory are never put together: an allocator keeps what it frees."""
    row = _ops.get(name)
    if row is None:
        if len(_ops) >= _MOST_NAMES:
            return
        row = _ops[name] = {"calls": 0, "host_ns": 0}
    row["calls"] += 1
    row["host_ns"] += host_ns
    for key, delta in (("allocator_delta_bytes", allocator_bytes), ("device_delta_bytes", device_bytes)):
        if delta is not None:
            row[key] = row.get(key, 0) + delta


def taken_phases() -> dict[str, dict[str, int]]:
    """What was counted since the window opened; the counts begin anew."""
    found = {name: {"calls": calls, "total_ns": total} for name, (calls, total) in _phases.items()}
    _phases.clear()
    return found


def taken_ops() -> dict[str, dict[str, int]]:
    """The same for ops."""
    found = dict(_ops)
    _ops.clear()
    return found


def _forget_in_child() -> None:
    """A forked child has our memory but not our threads: it records nothing, and must not touch the parent's files."""
    global profiler, is_timing, ring
    if profiler is not None:
        profiler.become_inert()
    profiler, is_timing, ring = None, False, None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
