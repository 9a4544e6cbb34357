"""Times steps as a job runs them: free-running, with a wait for the device at the end of a run."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

from benchmarks.diagnosis.job import Step

Finish = Callable[[], None]
AGREE = 0.05
MOST_WARM_UP_S = 10.0
LEAST_STEPS, MOST_ROUND_S = 10, 1.5
_WAITED_STEPS = 10


def time_steps(step: Step, finish: Finish, numbers: Iterator[int], count: int) -> float:
    """Seconds a step, over `count` of them between two waits for the device."""
    finish()
    begin = time.perf_counter()
    for _ in range(count):
        step(next(numbers))
    finish()
    return (time.perf_counter() - begin) / count


def time_waited(step: Step, finish: Finish, numbers: Iterator[int], mean: float) -> float:
    """The same with a wait after every step."""
    count = min(_WAITED_STEPS, count_steps(mean, 0.0))
    finish()
    begin = time.perf_counter()
    for _ in range(count):
        step(next(numbers))
        finish()
    return (time.perf_counter() - begin) / count


def warm_up(step: Step, finish: Finish, numbers: Iterator[int]) -> float:
    """Run until two successive means agree, or for so long; the last mean, in seconds."""
    time_steps(step, finish, numbers, 1)  # compiles
    until = time.perf_counter() + MOST_WARM_UP_S
    last = time_steps(step, finish, numbers, 1)
    while True:
        mean = time_steps(step, finish, numbers, count_steps(last, 0.1, least=3))
        if abs(mean / last - 1) <= AGREE or time.perf_counter() > until:
            return mean
        last = mean


def count_steps(mean: float, seconds: float, *, least: int = LEAST_STEPS, workers: int = 1) -> int:
    """How many steps a run has: at least so many and so long, but no longer than MOST_ROUND_S.

    Known before the run: a host that runs ahead of its device would queue minutes of work in a second. Loaders with
    several workers deliver in bursts, so it is a multiple of their number where that is not much longer.
    """
    mean = max(mean, 1e-7)
    count = min(max(least, math.ceil(seconds / mean)), max(2, int(MOST_ROUND_S / mean)))
    whole = math.ceil(count / workers) * workers
    return whole if whole <= 2 * count else count


def settle(step: Step, finish: Finish, numbers: Iterator[int], mean: float, workers: int) -> None:
    """Steps that are not timed: batches that piled up while another variant ran are used up, caches are warm again."""
    wanted = 2 if workers == 1 else 2 * workers
    time_steps(step, finish, numbers, min(wanted, max(1, int(MOST_ROUND_S / max(mean, 1e-7)))))
