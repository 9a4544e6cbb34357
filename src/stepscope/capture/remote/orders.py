"""A recording that was asked for from outside: it begins with the next step of the loop, whatever counts the steps."""

from __future__ import annotations

import queue
from typing import Any

from stepscope.capture.process import active
from stepscope.capture.process.step_times import KEPT
from stepscope.capture.profiler import Profiler
from stepscope.capture.schedule import schedule

# One step before the window is timed, and one warms the collectors up.
BEFORE, WARMUP = 1, 1


class OrderProfiler(Profiler):
    """Records beside a Profiler that is running but not recording, and leaves that one in its place."""

    def start_at(self, number: int) -> None:
        """Begin to count at this step."""
        host = active.profiler
        self.start()
        self._count_from(number)
        active.profiler = host

    def _may_start(self) -> bool:
        return True


class Order:
    """A number of steps, as soon as possible or from a certain step on. The loop's thread reports steps, other threads ask for the rest."""

    def __init__(
        self, folder: str, steps: int, first: int = 0, options: dict[str, Any] | None = None
    ) -> None:
        self.news: queue.Queue[dict[str, Any]] = queue.Queue()
        self._folder = folder
        self._steps = steps
        self._first = first
        self._options = options or {}
        self._profiler: OrderProfiler | None = None
        self._is_told = False
        self._last = 0
        self.is_over = False

    @property
    def has_begun(self) -> bool:
        """Whether the loop has taken it up."""
        return self._profiler is not None

    @property
    def is_recorded(self) -> bool:
        """Whether the steps are recorded; the steps that follow may still be timed."""
        return self._is_told

    def step(self, number: int) -> None:
        """A step of the loop has ended; `number` is how many have."""
        profiler = self._profiler
        if self.is_over:
            return
        if profiler is None:
            self._begin(number)
            return
        profiler.step()
        if not self._is_told and number >= self._last:
            self._tell()
        if self._is_told and (not profiler.files or number >= self._last + KEPT):
            self.end()

    def end(self) -> None:
        """Stop, and report what there is."""
        if self.is_over:
            return
        self.is_over = True
        if self._profiler is not None:
            self._profiler.stop()
        self._tell()

    def become_inert(self) -> None:
        """In a forked child: the recording is the parent's."""
        self.is_over = True
        if self._profiler is not None:
            self._profiler.become_inert()

    def _begin(self, number: int) -> None:
        first = max(number + BEFORE + WARMUP, self._first)
        self._last = first + self._steps
        steps = schedule(skip=first - WARMUP, warmup=WARMUP, active=self._steps)
        self._profiler = OrderProfiler(self._folder, schedule=steps, **self._options)
        self._profiler.start_at(number)
        self.news.put({"state": "recording", "first": first, "last": self._last - 1})

    def _tell(self) -> None:
        if self._is_told:
            return
        self._is_told = True
        profiler = self._profiler
        self.news.put(
            {
                "state": "done",
                "files": [] if profiler is None else [str(path) for path in profiler.files],
                "problems": [] if profiler is None else profiler.problems,
            }
        )
