"""How many steps are counted in each loop named: all in one process, since importing a framework takes longer than the loops."""

from __future__ import annotations

import sys
from typing import Any

from stepscope.capture.loop.loop import Loop
from stepscope.capture.loop.sources import watch
from tests.capture.jobs import loops
from tests.capture.jobs.facts import tell

current: Loop | None = None


class Count:
    """Steps since the loop began, as a Profiler would count them."""

    def __init__(self) -> None:
        self.begun = self.steps = 0

    def begin(self) -> None:
        self.begun += 1
        self.steps = 0

    def step(self) -> None:
        self.steps += 1


def counted(name: str, steps: int) -> dict[str, Any]:
    global current
    count = Count()
    current = Loop(count.begin, count.step)
    getattr(loops, name)(steps)
    return {"steps": count.steps, "source": current.source, "has_begun": count.begun > 0}


if __name__ == "__main__":
    watch(lambda: current)
    tell(**{name: counted(name, int(sys.argv[1])) for name in sys.argv[2:]})
