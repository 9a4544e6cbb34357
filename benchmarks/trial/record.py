"""Measures the gain of each job's fix in alternating rounds, and records the job as it is.

  PYTHONPATH=src python -m benchmarks.trial.record JOBS_FOLDER OUT [--only REGEX] [--rounds 5] [--bundle FOLDER]
  PYTHONPATH=src python -m benchmarks.trial.record --set tuned OUT
  PYTHONPATH=src python -m benchmarks.trial.record JOBS_FOLDER OUT --ours [--rounds 2]

Wants a GPU to mean anything, and PyTorch, JAX or both. A job gets two processes, one a variant, which run in turn: rounds
of un-profiled steps, a recording by stepscope, one by the framework's own profiler, more rounds. OUT/NAME/result.json has
the figures, OUT/NAME/ours and OUT/NAME/framework the recordings. `python -m benchmarks.trial.score OUT` judges them.
`--ours` leaves out the framework's recording and the rounds after it, at about half the time: for many known jobs under
new rules, with two rounds, or for a trial with little time on a GPU.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.trial.bundle import bundle
from benchmarks.trial.interval import gain
from benchmarks.trial.jobs import SETS, Spec, list_files, list_set
from benchmarks.trial.variant import JobFailed, Variant

PATIENCE_S = 60.0
_AGAIN = 2  # rounds after the recordings
_OF_ROUNDS = 0.5  # of the time that a job may take: then it is recorded
_LAST_JOB_S = 20.0  # no job is begun with less time left


@dataclass
class Started:
    """A job whose processes are there; the slow variant, and the fixed one unless the job is healthy."""

    spec: Spec
    slow: Variant
    fixed: Variant

    def end(self) -> None:
        """End both at the same time: it takes a framework a while to leave a device."""
        for variant in (self.slow, self.fixed):
            variant.close()
        for variant in (self.slow, self.fixed):
            variant.end()


def start(spec: Spec) -> Started:
    """Start the processes, which import their framework."""
    return Started(spec, Variant(spec, "slow"), Variant(spec, "fixed"))


@dataclass
class Trial:
    """One job being measured; `result` is written after each phase, so that a crash costs only what comes after it."""

    started: Started
    folder: Path
    rounds: int
    seconds: float
    result: dict[str, Any]
    variants: list[Variant] = field(default_factory=list)  # those that run

    def prepare(self) -> None:
        """Build both at the same time, then warm up one after the other."""
        slow = self.started.slow
        self.result |= slow.ask("load")
        self.variants = [slow]
        slow.tell("build")
        if not self.result["healthy"]:
            self.build_fixed()
        slow.answer("build")
        self.result["versions"] = slow.ask("versions")
        for variant in list(self.variants):
            variant.ask("warm_up")

    def build_fixed(self) -> None:
        """Where that fails the recordings are still worth having: the job goes on without a gain."""
        fixed = self.started.fixed
        try:
            fixed.ask("load")
            fixed.ask("build")
        except JobFailed as failure:
            self.result["error"] = str(failure)
        else:
            self.variants.append(fixed)

    def alternate(self, count: int, until: float = float("inf")) -> None:
        """Rounds of all variants in turn; fewer where steps are so long that no time would be left to record them."""
        for number in range(count):
            if number and time.monotonic() > until:
                break
            took = [variant.ask("time_round", self.seconds) for variant in self.variants]
            self.result["rounds"].append([*took, 0][:2])
            self.note_gain()

    def note_gain(self) -> None:
        """The range of all rounds so far, and the steps behind it."""
        rounds = self.result["rounds"]
        found = gain(rounds, self.result.get("samples", (1, 1)))
        self.result["gain"] = found.rows() if found else None
        names = [variant.name for variant in self.variants]
        columns = zip(*rounds, strict=True)
        self.result["step_ns"] = {
            name: round(median(times)) for name, times in zip(names, columns, strict=False)
        }

    def wait_after_steps(self) -> None:
        """For information: what the steps take with a wait after each."""
        self.result["waited_ns"] = {variant.name: variant.ask("time_waited") for variant in self.variants}

    def record_ours(self) -> None:
        """With an un-profiled round right before and right after it."""
        slow, folder = self.started.slow, self.folder / "ours"
        before = slow.ask("time_round", self.seconds)
        self.result["problems"] = slow.ask("record_ours", str(folder))
        self.result["unprofiled_ns"] = [before, slow.ask("time_round", self.seconds)]

    def record_framework(self) -> None:
        """Only what its own profiler writes."""
        folder = self.folder / "framework"
        folder.mkdir(exist_ok=True)
        self.started.slow.ask("record_framework", str(folder))

    def write(self) -> None:
        """Keep what is known."""
        (self.folder / "result.json").write_text(json.dumps(self.result, indent=1))


def run_ours(trial: Trial, until: float, start_next: Callable[[], None]) -> None:
    """Rounds and our recording; the next job imports its framework while this one is built."""
    start_next()
    trial.prepare()
    trial.alternate(trial.rounds, until)
    trial.write()
    trial.record_ours()
    trial.write()


def run_trial(trial: Trial, until: float, start_next: Callable[[], None]) -> None:
    """All phases; the processes of the next job start while nothing is timed that a start would disturb much."""
    trial.prepare()
    phases: Sequence[Callable[[], None]] = (
        lambda: trial.alternate(trial.rounds, until),
        trial.wait_after_steps,
        trial.record_ours,
        start_next,
        trial.record_framework,
        lambda: trial.alternate(_AGAIN),
    )
    for phase in phases:
        phase()
        trial.write()


def record_job(
    started: Started, out: Path, options: argparse.Namespace, start_next: Callable[[], None]
) -> dict[str, Any]:
    """Measure and record one job; whatever goes wrong is in its result."""
    folder = out / started.spec.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    begin = time.monotonic()
    started.slow.deadline = started.fixed.deadline = begin + options.patience
    trial = Trial(started, folder, options.rounds, options.round_seconds, new_result(started.spec))
    run = run_ours if options.ours else run_trial
    try:
        run(trial, begin + _OF_ROUNDS * options.patience, start_next)
    except JobFailed as failure:
        trial.result["error"] = "; ".join(filter(None, (trial.result["error"], str(failure))))
    finally:
        started.end()
    trial.result["took_s"] = round(time.monotonic() - begin, 1)
    trial.write()
    return trial.result


def new_result(spec: Spec) -> dict[str, Any]:
    """What is known before anything ran."""
    return {"name": spec.name, "healthy": False, "rounds": [], "gain": None, "error": ""}


def describe(result: dict[str, Any], folder: Path) -> str:
    """One line of progress."""
    found, step = result["gain"], result.get("step_ns", {}).get("slow")
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    parts = [
        f"{result['took_s']:5.1f} s",
        f"{step / 1e6:8.2f} ms" if step else "       -   ",
        f"{found['low']:.2f}–{found['mid']:.2f}–{found['high']:.2f}×"
        if found
        else "healthy" * result["healthy"],
        f"{len(result['rounds'])} rounds",
        f"{size / 1e6:.1f} MB",
        result["error"],
    ]
    return f"{result['name']:36} " + "  ".join(parts)


def record_all(specs: list[Spec], out: Path, options: argparse.Namespace) -> int:
    """Every job until the time is up; how many could not be recorded."""
    until = time.monotonic() + options.seconds
    waiting = list(specs)
    ahead: list[Started] = []
    failed = 0

    def start_next() -> None:
        if waiting and not ahead and time.monotonic() + _LAST_JOB_S < until:
            ahead.append(start(waiting.pop(0)))

    start_next()
    while ahead:
        started = ahead.pop()
        result = record_job(started, out, options, start_next)
        print(describe(result, out / started.spec.name), flush=True)
        failed += bool(result["error"])
        start_next()
    if waiting:
        print(f"No time for {', '.join(spec.name for spec in waiting)}", flush=True)
    return failed + len(waiting)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", type=Path, nargs="+", metavar="[JOBS_FOLDER] OUT")
    parser.add_argument(
        "--set", choices=tuple(SETS), help="jobs of benchmarks.diagnosis, in place of a folder"
    )
    parser.add_argument("--only", default="", help="a regular expression for names")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--round-seconds", type=float, default=0.3, help="the least length of a round")
    parser.add_argument("--ours", action="store_true", help="stepscope's recording only")
    parser.add_argument("--seconds", type=float, default=1e6, help="no job is begun when they are over")
    parser.add_argument("--patience", type=float, default=PATIENCE_S, help="seconds a job may take")
    parser.add_argument("--bundle", type=Path, help="also pack everything into few files, in this folder")
    options = parser.parse_args(arguments)
    if len(options.paths) != (1 if options.set else 2):
        parser.error("name a folder of jobs and an output folder, or --set and an output folder")
    return options


def main() -> int:
    """Record, and pack if asked."""
    options = parse()
    out: Path = options.paths[-1]
    out.mkdir(parents=True, exist_ok=True)
    if options.set:
        specs = list_set(options.set, options.only)
    else:
        specs = list_files(options.paths[0], options.only)
    failed = record_all(specs, out, options)
    print(f"{len(specs) - failed} of {len(specs)} recorded", flush=True)
    if options.bundle:
        print(*bundle(out, options.bundle), sep="\n", flush=True)
    return 0 if len(specs) > failed else 1


if __name__ == "__main__":
    sys.exit(main())
