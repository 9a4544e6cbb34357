"""When recording was wanted: the collectors cannot pause, or not cleanly, so the rest is taken out of the file after."""

from __future__ import annotations

import time

Stretch = tuple[int, int]


class Stretches:
    """All of the time, unless it was ever paused."""

    def __init__(self, asked_ns: int | None = None) -> None:
        self.asked_ns = asked_ns  # when the collector was asked to start
        self.done: list[Stretch] = []
        self.was_paused = False
        self._began = time.time_ns()
        self._is_open = True

    def pause(self) -> None:
        """What comes now is not wanted."""
        self.was_paused = True
        if self._is_open:
            self.done.append((self._began, time.time_ns()))
            self._is_open = False

    def resume(self) -> None:
        """From now on it is."""
        if not self._is_open:
            self._began = time.time_ns()
            self._is_open = True
