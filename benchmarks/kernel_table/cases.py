"""A case: a few kernels whose number format is known because we chose it; and how to run many of them."""

from __future__ import annotations

import json
import re
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.kernel_table.marker import BEGIN, END, Marker

Run = Callable[[], object]
Build = Callable[[], Run]


@dataclass(frozen=True)
class Case:
    """`build` makes the inputs and returns what to run; `precision` is the format of the main operands."""

    name: str
    precision: str
    build: Build


@dataclass
class Outcome:
    """What happened to each case, by its number."""

    names: dict[int, str] = field(default_factory=dict)
    precisions: dict[int, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    modules: dict[str, str] = field(default_factory=dict)  # XLA's, by case

    def save(self, path: Path) -> None:
        """As JSON."""
        path.write_text(json.dumps(self.__dict__, indent=1))


def run_all(cases: list[Case], only: str, seconds: float, release: Callable[[], None]) -> Outcome:
    """Build, warm up, run once between two markers, and let go: `ncu` saves all memory that a process holds."""
    marker, outcome, began = Marker(), Outcome(), time.monotonic()
    for number, case in enumerate(cases):
        if not re.search(only, case.name):
            continue
        if time.monotonic() - began > seconds:
            outcome.skipped.append(case.name)
            continue
        at = time.monotonic()
        try:
            _run(number, case, marker)
            outcome.names[number], outcome.precisions[number] = case.name, case.precision
        except Exception:
            outcome.failures[case.name] = traceback.format_exc(limit=-2)[-600:]
        release()
        outcome.seconds[case.name] = round(time.monotonic() - at, 2)
    print(f"{len(outcome.names)} cases run in {time.monotonic() - began:.0f} s", flush=True)
    return outcome


def _run(number: int, case: Case, marker: Marker) -> None:
    run = case.build()
    run()
    run()
    marker.start()
    try:
        marker.launch(number, BEGIN)
        run()
        marker.launch(number, END)
    finally:
        marker.stop()
