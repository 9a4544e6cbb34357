"""The same for a notebook: variants of a step, measured in turns in this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from stepscope.analysis.findings.finding import Interval
from stepscope.capture.backends.waits import wait_for_devices
from stepscope.trial.estimate import compare, unchanged_difference
from stepscope.trial.text import interval_words

Step = Callable[[], object]
_FRAMEWORKS = ("torch", "tensorflow", "jax")


@dataclass(frozen=True)
class Compared:
    """Times faster than the unchanged step, by change; `unchanged` is by how much unchanged runs in a row differ."""

    step_ns: float
    unchanged: float
    changes: dict[str, Interval]

    def __str__(self) -> str:
        width = max(map(len, self.changes), default=0)
        lines = [f"{name:{width}}  {interval_words(found)}" for name, found in self.changes.items()]
        return "\n".join([*lines, f"Unchanged runs in a row differ by up to {100 * self.unchanged:.1f} %."])


def try_(
    step: Step,
    changes: Mapping[str, Step],
    *,
    rounds: int = 5,
    steps: int = 20,
    warmup: int = 3,
    least_s: float = 0.2,
) -> Compared:
    """Time `step()` against each changed step, alternately: `stepscope.try_(step, {"compiled": torch.compile(step)})`.

    A run is `steps` calls and at least `least_s` seconds, between waits for the device.
    """
    for each in (step, *changes.values()):
        _run(each, max(1, warmup), 0.0)
    unchanged = [_run(step, steps, least_s)]
    rows: dict[str, list[float]] = {name: [] for name in changes}
    for _ in range(max(2, rounds)):
        for name, changed in changes.items():
            rows[name].append(_run(changed, steps, least_s))
        unchanged.append(_run(step, steps, least_s))
    found = dict(zip(rows, compare(unchanged, list(rows.values())), strict=True))
    return Compared(sum(unchanged) / len(unchanged), unchanged_difference(unchanged), found)


def _run(step: Step, steps: int, least_s: float) -> float:
    """The mean length of a call, in ns."""
    wait_for_devices(_FRAMEWORKS)
    began, count = time.perf_counter_ns(), 0
    while count < steps or time.perf_counter_ns() - began < 1e9 * least_s:
        step()
        count += 1
    wait_for_devices(_FRAMEWORKS)
    return (time.perf_counter_ns() - began) / count
