"""The light window: some steps right before the window, recorded by device activity and launches alone.

Recording names, shapes and stacks slows the host, and a promise needs the time that the host takes without it. So a few steps
are recorded lightly first, and the two windows are joined by the order of their launches. The light window takes steps that
are skipped anyway: the recorded steps are those that were asked for. Whatever fails costs the light window alone, and the
sidecar says why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from stepscope.capture.backends.base import Backend
from stepscope.capture.files.writer import LIGHT, Incomplete, Recorded, is_whole
from stepscope.capture.process import clock
from stepscope.capture.schedule import NEVER, Schedule
from stepscope.capture.unprofiled import SKIPPED

MOST_STEPS = 8
# One step cannot show what varies between steps.
FEWEST_STEPS = 2
# In this step the collector loads and allocates what it needs.
WARM_UP = 1

# Before its first steps nobody knows which devices a job uses; the unprofiled run begins later.
DECIDED_AFTER = SKIPPED - 1

Point = Literal["decide", "warmup", "start", "end", ""]
TURNED_OFF = "it was turned off"
NO_ROOM = "fewer steps came before the window than it needs"
WITH_REGIONS = "only regions are recorded"
WARMED_UP = "the collectors were warmed up by hand"
NO_GPU = "neither PyTorch nor JAX uses a GPU"


class LightSteps:
    """Which steps the light window takes. It knows step numbers only; the Profiler acts on them."""

    def __init__(self, *, is_wanted: bool) -> None:
        self.reason = NO_ROOM if is_wanted else TURNED_OFF
        self._is_wanted = is_wanted
        self._points: list[tuple[int, Point]] = []
        self._steps = 0
        self._edge = NEVER

    def plan(self, number: int, schedule: Schedule, *, has_regions: bool) -> None:
        """Steps go unprofiled from `number` on: is there room before the next window?"""
        self._points = []
        if not self._is_wanted:
            return
        self._edge = schedule.next_change(number)
        room = self._edge - number - SKIPPED - WARM_UP
        # The unprofiled run has the other half.
        self._steps = min(schedule.active, MOST_STEPS, (room + 1) // 2)
        self.reason = WITH_REGIONS if has_regions else NO_ROOM
        if not has_regions and self._edge < NEVER and self._steps >= FEWEST_STEPS:
            self._points = [(number + DECIDED_AFTER, "decide")]

    def take_steps(self) -> None:
        """There is to be a light window."""
        self.reason = ""
        start = self._edge - self._steps
        self._points = [(start - WARM_UP, "warmup"), (start, "start"), (self._edge, "end")]

    def give_up(self, reason: str) -> None:
        """There is none before this window."""
        self._points, self.reason = [], reason

    @property
    def next_point(self) -> int:
        """The step at which something is to be done for it."""
        return self._points[0][0] if self._points else NEVER

    @property
    def first(self) -> int:
        """From this step on nothing counts as unprofiled; NEVER where there is no light window to come."""
        return NEVER if not self._points or self._points[0][1] == "decide" else self.next_point

    @property
    def is_open(self) -> bool:
        """Whether its collector is at work."""
        return bool(self._points) and self._points[0][1] in ("start", "end")

    def reach(self, number: int) -> Point:
        """The step `number` begins: what is to be done."""
        return self._points.pop(0)[1] if number >= self.next_point else ""


class LightWindow:
    """The collector of a light window. Nothing here raises: what fails becomes the reason why there is none."""

    def __init__(self, make: Callable[[], Backend | None], folder: Path) -> None:
        self._folder = folder
        self._backend: Backend | None = None
        self._started: dict[str, int] = {}
        self._note: dict[str, Any] = {}
        self._files: list[Recorded] = []
        self.reason = ""
        self.name = ""
        self._attempt("making its collector", lambda: self._make(make))

    def _make(self, make: Callable[[], Backend | None]) -> None:
        self._backend = make()
        self.reason = NO_GPU if self._backend is None else ""
        self.name = "" if self._backend is None else self._backend.name

    def warm_up(self) -> None:
        """Load and allocate what the collector needs."""
        self._with_backend("warming up", lambda backend: backend.warm_up(self._folder))

    def start(self) -> None:
        """Record from now on."""
        self._with_backend("starting", lambda backend: backend.start(self._folder))
        self._started = clock.both()

    def finish(self, first: int, moments: list[int]) -> None:
        """Stop and write the file. `moments` is when the first step began and when each ended, by `perf_counter`."""
        ended = clock.both()
        self._with_backend("stopping", lambda backend: backend.stop())
        self._with_backend("writing its file", self._save)
        self._backend = None
        self._note = {
            "first": first,
            "moments_ns": moments,
            "clock": clock.compared(self._started or ended, ended),
        }

    def _save(self, backend: Backend) -> None:
        trace = backend.save()[0]
        if not is_whole(trace.path):
            raise Incomplete(trace.path.name)
        self._files = [replace(trace, ending=LIGHT)]

    def abandon(self) -> None:
        """Let go of the collector."""
        backend, self._backend = self._backend, None
        if backend is not None:
            self._attempt("stopping", backend.abandon)

    def files_of(self, backend: str) -> list[Recorded]:
        """Its file, for the trace that this collector recorded."""
        return self._files if backend == self.name else []

    def note(self, backend: str) -> dict[str, Any]:
        """For the sidecar of that trace."""
        if self._files and backend == self.name:
            return {"file": None, "reason": None, "backend": self.name, **self._note}
        return {"file": None, "reason": self.reason or f"it belongs to the trace of {self.name}"}

    def _with_backend(self, what: str, act: Callable[[Backend], None]) -> None:
        backend = self._backend
        if backend is not None and not self._attempt(what, lambda: act(backend)):
            self.abandon()

    def _attempt(self, what: str, act: Callable[[], None]) -> bool:
        try:
            act()
        except Exception as error:
            self.reason = self.reason or f"{what} failed: {type(error).__name__}: {error}"
            return False
        return True


def unrecorded(reason: str) -> dict[str, Any]:
    """The note of a window without a light one."""
    return {"file": None, "reason": reason}
