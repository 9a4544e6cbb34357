"""What of a recording outlives its process: the ring from start() to stop(), and nothing of it once the real files are there.

Steps of a window are written as they end. Outside of windows a step must cost nothing: there a thread looks several times a second.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence

from stepscope.capture.files.published import Published
from stepscope.capture.process import clock
from stepscope.capture.process.troubles import Troubles
from stepscope.capture.ring.ring import Ring, open_ring
from stepscope.capture.settings import Settings, about
from stepscope.ring_layout import STEPS, WORD_BYTES

_LAST_SLOT = STEPS.slots - 1
# A slot tells only the last bits of a step's number: the rest has to be told before they come round.
_MARKED = STEPS.slots // 2
# How many steps have ended, and when the last of them did.
Steps = Callable[[], tuple[int, deque[int]]]


class ProfilerRing:
    """The ring of one Profiler, if it has any."""

    def __init__(self, steps: Steps) -> None:
        self.ring: Ring | None = None
        self._steps = steps
        self._is_lost = False
        self._is_in_window = False
        self._marked = 0
        self._seen = 0

    def open(self, settings: Settings, troubles: Troubles) -> None:
        """A recording begins."""
        facts = about(settings)
        self._is_lost = self._is_in_window = False
        self._marked = self._seen = 0
        self.ring = open_ring(settings.folder, facts["worker"], troubles)
        if self.ring is not None:
            began = time.perf_counter_ns()
            self.ring.tell(**facts, start_ticks=_start_ticks(), began_ns=began, number=0, at_ns=began)
            self.ring.watch(self.look_at_steps)

    def mark(self, number: int) -> None:
        """Note the number of steps that have ended."""
        self._marked = number
        if self.ring is not None:
            self.ring.tell(number=number, at_ns=time.perf_counter_ns())

    def step_ended(self, number: int, moment: int) -> None:
        """A step of the window."""
        if self.ring is not None:
            self.ring.moments[number & _LAST_SLOT] = moment
            if number >= self._marked + _MARKED:
                self.mark(number + 1)

    def look_at_steps(self) -> None:
        """Outside of windows, from a thread of ours: the last steps that ended."""
        ring = self.ring
        number, recent = self._steps()
        if ring is None or self._is_in_window or number == self._seen:
            return
        new = number - self._seen
        moments = list(recent)[1:]  # the first is when the first step began, or the end of one long ago
        if new > len(moments):  # what lies between is not known any more
            ring.moments[:] = memoryview(bytes(STEPS.slots * WORD_BYTES)).cast("q")
        for back, moment in enumerate(reversed(moments[-new:]), 1):
            ring.moments[(number - back) & _LAST_SLOT] = moment
        self._seen = number
        if number >= self._marked + _MARKED:
            self.mark(number)

    def enter_window(self) -> Ring | None:
        """A window opens; where it is kept."""
        self.look_at_steps()
        self._is_in_window = True
        return self.ring

    def leave_window(self, published: Sequence[Published]) -> None:
        """The window is over, and this was written of it."""
        self._is_in_window = False
        self._seen = self._steps()[0]
        if self.ring is None:
            return
        self._is_lost = self.ring.holds_window and not any(each.trace is not None for each in published)
        if not self._is_lost:
            self.ring.tell(window=None)

    def close(self) -> None:
        """The recording is over. What could not be written stays in the ring."""
        ring, self.ring = self.ring, None
        if ring is None:
            return
        if self._is_lost:
            ring.tell(has_ended=True)
            ring.keep()
        else:
            ring.remove()

    def become_inert(self) -> None:
        """In a forked child: the ring is the parent's."""
        self.ring = None


def _start_ticks() -> int | None:
    try:
        return clock.process_start_ticks()
    except (OSError, ValueError, IndexError):
        return None
