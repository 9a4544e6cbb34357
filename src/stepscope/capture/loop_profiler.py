"""The Profiler of a loop that does not know of it: steps come from a Loop, or by `stepscope.step()` where the job calls it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from stepscope.capture.loop.input_workers import Workers
from stepscope.capture.loop.loop import Loop
from stepscope.capture.process.step_times import KEPT
from stepscope.capture.profiler import Profiler


class LoopProfiler(Profiler):
    """Gives way to a Profiler that the job itself starts."""

    steps_after = KEPT

    def __init__(
        self,
        folder: str | os.PathLike[str],
        loop: Loop,
        advance: Callable[[], None],
        gave_way: Callable[[str], None],
        **options: Any,
    ) -> None:
        super().__init__(folder, **options)
        self._loop = loop
        self._advance = advance
        self._gave_way = gave_way

    def step(self) -> None:
        """The job's own call."""
        if self._loop.called():
            self._advance()

    def advance(self) -> None:
        """A step is over, as the Loop found."""
        super().step()

    @property
    def is_waiting(self) -> bool:
        """Whether nothing has been recorded yet, nor is being."""
        return self._window is None and not self._published

    def watch_input(self, workers: Workers) -> None:
        """The worker processes of a loader that the job iterates."""
        self._waits.watch(workers)

    def give_way_to(self, other: Profiler) -> bool:
        """The job starts one of its own: let it."""
        self.stop()
        self._gave_way(str(other.folder))
        return True
