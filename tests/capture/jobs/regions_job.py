"""A loop that collects and trains, timed by the job itself: regions_job.py FRAMEWORK FOLDER REGION…"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import stepscope
from tests.capture.jobs.facts import tell

PASSES = 6
UNITS = {"collect": 12, "train": 3}


def _python() -> object:
    return sum(value * value for value in range(20_000))


def _torch() -> Callable[[], object]:
    torch: Any = import_module("torch")
    matrix = torch.randn(256, 256)
    return lambda: [(matrix @ matrix).sum().item() for _ in range(4)]


def _tensorflow() -> Callable[[], object]:
    tf: Any = import_module("tensorflow")
    matrix = tf.random.normal((256, 256))
    product = tf.function(lambda x: tf.reduce_sum(x @ x))
    return lambda: [float(product(matrix)) for _ in range(4)]


def main(framework: str, folder: str, *regions: str) -> None:
    work = {"torch": _torch, "tensorflow": _tensorflow}.get(framework, lambda: _python)()
    work()
    took: dict[str, list[int]] = {name: [] for name in UNITS}
    with stepscope.profile(folder, regions=regions) as prof:
        for _ in range(PASSES):
            for name, units in UNITS.items():
                with prof.region(name):
                    start = time.perf_counter_ns()
                    for _ in range(units):
                        work()
                    took[name].append(time.perf_counter_ns() - start)
            time.sleep(0.02)  # neither
            prof.step()
    found = {}
    for name in regions:
        report = stepscope.report(prof.files[-1], step_name=name, sections=("steps", "breakdown"))
        found[name] = {
            "region": report.steps.region,
            "durations": [row.duration_ns for row in report.steps.rows],
            "account": sum(row.ns for row in report.breakdown),
        }
    shown = prof.report(sections=("steps", "regions"))
    tell(
        took=took,
        found=found,
        shown=shown.steps.region,
        regions={row.name: [row.count, row.mean_ns] for row in shown.regions},
        noted=stepscope.load(prof.files[-1]).traces[0].info.capture["regions"],
    )


main(*sys.argv[1:])
