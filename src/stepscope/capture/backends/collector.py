"""What the collectors of the frameworks have in common: steps as spans, breaks, turns with other profilers, letting go."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from stepscope.capture.backends.base import Options
from stepscope.capture.backends.exclusive import Turn, ours
from stepscope.capture.backends.pauses import Stretches


class Collector(ABC):
    """One session of a framework's profiler; what a framework does itself is for the class of its own."""

    name = ""
    in_run_folder = True

    def __init__(self, options: Options) -> None:
        self._options = options
        self._folder = Path()
        self._is_running = False
        self._step: Any = None
        self._stretches = Stretches()
        self._turn = Turn(self.name, self._let_go)

    def _began(self, asked_ns: int | None = None) -> None:
        """The framework records from now on; it was asked to at `asked_ns`."""
        self._is_running = True
        self._stretches = Stretches(asked_ns)

    def begin_step(self, number: int) -> None:
        if self._step is not None:
            self.end_step()
        self._step = self._span_of_step(number)
        self._step.__enter__()

    def end_step(self) -> None:
        step, self._step = self._step, None
        if step is not None:
            step.__exit__(None, None, None)

    def pause(self) -> None:
        self._synchronize()
        self._stretches.pause()

    def resume(self) -> None:
        self._synchronize()
        self._stretches.resume()

    def stop(self) -> None:
        self._turn.check()
        self._synchronize()
        self._turn.release()
        self._is_running = False
        with ours():
            self._stop_recording()

    def abandon(self) -> None:
        self._turn.release()
        with ours():
            self._let_go()

    @abstractmethod
    def _span_of_step(self, number: int) -> Any:
        """What marks the step, not yet entered."""

    @abstractmethod
    def _synchronize(self) -> None:
        """Wait for what the devices still have to do, so that no work runs into a window or out of it."""

    @abstractmethod
    def _stop_recording(self) -> None:
        """The framework's own call."""

    @abstractmethod
    def _let_go(self) -> None:
        """End whatever is open: another profiler wants to record, or something failed."""
