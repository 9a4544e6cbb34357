"""No framework: a plain loop."""

from __future__ import annotations

import sys
from pathlib import Path

import stepscope
from tests.capture.jobs.facts import facts, tell

FOLDER = Path(sys.argv[1])


def work(size: int) -> int:
    return sum(i * i for i in range(size))


@stepscope.op("my_kernel")
def my_kernel(size: int) -> int:
    return work(size)


def recorded(name: str, **options: object) -> stepscope.Profiler:
    with stepscope.profile(FOLDER / name, **options) as prof:
        for size in prof.input([20_000] * 16):
            with stepscope.annotate("forward"):
                work(size)
            my_kernel(size)
            prof.step()
    return prof


if __name__ == "__main__":
    steps = stepscope.schedule(skip=4, warmup=2, active=4)
    tell(scheduled=facts(recorded("scheduled", schedule=steps)), plain=facts(recorded("plain")))
