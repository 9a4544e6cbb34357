"""Which steps are skipped, used to warm the collectors up, and recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Phase = Literal["off", "warmup", "record"]
NEVER = 1 << 62
# Without a schedule recording begins at once, and a loop that nobody bounded is recorded so far.
STEPS_WITHOUT_SCHEDULE = 20
# Between two windows, for a profiler's library to be let go and attached again: both take it milliseconds and calls of the job.
ROOM = 10


@dataclass(frozen=True)
class Schedule:
    """Cycles of steps; made by `schedule`."""

    skip: int
    warmup: int
    active: int
    repeat: int

    def phase(self, step: int) -> Phase:
        """What to do during this step."""
        cycle, place = divmod(step, self._cycle)
        if self.repeat and cycle >= self.repeat:
            return "off"
        if place < self.skip:
            return "off"
        return "warmup" if place < self.skip + self.warmup else "record"

    def window(self, step: int) -> int:
        """The number of the cycle that the step belongs to."""
        return step // self._cycle

    def next_change(self, step: int) -> int:
        """The first step after this one on which something else may have to be done."""
        cycle, place = divmod(step, self._cycle)
        if self.repeat and cycle >= self.repeat:
            return NEVER
        edges = (self.skip, self.skip + self.warmup, self._cycle)
        return cycle * self._cycle + next(edge for edge in edges if edge > place)

    @property
    def leaves_room(self) -> bool:
        """Whether no window follows another one soon."""
        return self.repeat == 1 or self.skip >= ROOM

    @property
    def _cycle(self) -> int:
        return self.skip + self.warmup + self.active


def schedule(*, skip: int = 0, warmup: int = 0, active: int = 5, repeat: int = 1) -> Schedule:
    """Skip some steps, warm up, record, and repeat; `repeat=0` repeats until the job ends."""
    if min(skip, warmup, repeat) < 0 or active < 1:
        raise ValueError("a schedule needs skip, warmup and repeat of 0 or more, and active of 1 or more")
    return Schedule(skip, warmup, active, repeat)


def from_now(most_steps: int = STEPS_WITHOUT_SCHEDULE) -> Schedule:
    """Record at once, for a limited number of steps."""
    return Schedule(0, 0, most_steps, 1)
