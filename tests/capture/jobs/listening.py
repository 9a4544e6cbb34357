"""A job that can be recorded from at any time: `listening.py [plain|slow|own_profiler|torch] SECONDS`; it says when it is ready, and its count."""

from __future__ import annotations

import sys
import time
from typing import Any

import stepscope


def plain() -> Any:
    """No framework: the loop marks its own steps."""
    while True:
        sum(range(5_000))
        time.sleep(0.002)
        stepscope.step()
        yield


def slow() -> Any:
    """The most steps that can be asked for take longer than anyone waits."""
    while True:
        time.sleep(0.1)
        stepscope.step()
        yield


def own_profiler() -> Any:
    """A Profiler of the job's own, which has long recorded what it wanted."""
    prof = stepscope.Profiler("own", schedule=stepscope.schedule(active=2))
    prof.start()
    while True:
        time.sleep(0.002)
        prof.step()
        yield


def torch_loop() -> Any:
    """Nothing is marked."""
    import torch

    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    while True:
        model(torch.ones(2, 8)).sum().backward()
        optimizer.step()
        time.sleep(0.01)
        yield


if __name__ == "__main__":
    loop = {"plain": plain, "slow": slow, "own_profiler": own_profiler, "torch": torch_loop}[sys.argv[1]]()
    for _ in range(5):
        next(loop)
    print(stepscope.listen(), flush=True)  # noqa: T201
    end = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < end:
        next(loop)
