"""A case: a few kernels whose number format is known because we chose it; and how to run many of them."""

from __future__ import annotations

import json
import re
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
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
class Limits:
    """Seconds after which no further case is built, or run."""

    build_s: float
    run_s: float


@dataclass
class Outcome:
    """What happened to each case, by its number."""

    names: dict[int, str]
    precisions: dict[int, str]
    failures: dict[str, str]
    skipped: list[str]

    def save(self, path: Path) -> None:
        """As JSON."""
        path.write_text(json.dumps(self.__dict__, indent=1))


def chosen(cases: list[Case], only: str) -> Iterator[tuple[int, Case]]:
    """The cases whose names match, each with its number among all."""
    return ((i, case) for i, case in enumerate(cases) if re.search(only, case.name))


def run_all(
    cases: list[Case],
    only: str,
    limits: Limits,
    window: Callable[[Marker], AbstractContextManager[object]],
) -> Outcome:
    """Build and warm up every case first, so that the window holds each case once and nothing else."""
    marker = Marker()
    outcome = Outcome({}, {}, {}, [])
    ready: list[tuple[int, Case, Run]] = []
    began = time.monotonic()
    for i, case in chosen(cases, only):
        if time.monotonic() - began > limits.build_s:
            outcome.skipped.append(case.name)
            continue
        run = _built(case, outcome)
        if run is not None:
            ready.append((i, case, run))
    print(f"{len(ready)} cases built in {time.monotonic() - began:.0f} s", flush=True)
    began = time.monotonic()
    with window(marker):
        for i, case, run in ready:
            if time.monotonic() - began > limits.run_s:
                outcome.skipped.append(case.name)
                continue
            _run(i, case, run, marker, outcome)
    print(f"{len(outcome.names)} cases run in {time.monotonic() - began:.0f} s", flush=True)
    return outcome


def _built(case: Case, outcome: Outcome) -> Run | None:
    try:
        run = case.build()
        run()
        run()
    except Exception:
        outcome.failures[case.name] = traceback.format_exc(limit=-2)[-600:]
        return None
    return run


def _run(i: int, case: Case, run: Run, marker: Marker, outcome: Outcome) -> None:
    marker.launch(i, BEGIN)
    try:
        run()
        outcome.names[i], outcome.precisions[i] = case.name, case.precision
    except Exception:
        outcome.failures[case.name] = traceback.format_exc(limit=-2)[-600:]
    marker.launch(i, END)
