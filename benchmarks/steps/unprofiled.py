"""The un-profiled step as the capture states it, against un-profiled runs of steps alternated with it in one process.

  PYTHONPATH=src python -m benchmarks.steps.unprofiled OUT [--only REGEX] [--rounds N]

Wants one CUDA device. The jobs are those of benchmarks.diagnosis, slow as they are and mended. Each runs in a process of
its own: a timed run of steps, a recording, a timed run, a recording, a timed run. The truth of a recording is the mean of
the two runs around it; their difference is the noise of the machine. OUT/unprofiled.jsonl has a line a recording, with the
sidecar's own figures; `python -m benchmarks.steps.unprofiled --score OUT` prints the table.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.diagnosis.__main__ import SETS, finish_jax, finish_torch, release
from benchmarks.diagnosis.job import Job, Step

PATIENCE_SECONDS = 90
WARM_UP = 8
RECORDED_STEPS = 60  # the window, and a run of steps before and after it
LEAST_STEPS, LEAST_SECONDS, MOST_SECONDS = 20, 1.0, 4.0
Finish = Callable[[], None]


def jobs() -> Iterator[tuple[str, Job]]:
    """Every job with its framework."""
    from importlib import import_module

    for framework in ("torch", "jax"):
        for name in SETS.values():
            for job in import_module(f"benchmarks.diagnosis.{name.format(framework)}").JOBS:
                yield framework, job


def time_run(step: Step, finish: Finish, numbers: Iterator[int]) -> float:
    """Seconds a step, over enough of them."""
    finish()
    begin, done = time.perf_counter(), 0
    while True:
        step(next(numbers))
        done += 1
        took = time.perf_counter() - begin
        if took > MOST_SECONDS or (done >= LEAST_STEPS and took > LEAST_SECONDS):
            break
    finish()
    return (time.perf_counter() - begin) / done


def run_job(framework: str, job: Job, variant: str, out: Path, rounds: int) -> None:
    """Alternate runs and recordings, and write a line for each recording."""
    import stepscope

    window = stepscope.schedule(skip=26, warmup=2, active=4)
    finish = finish_torch if framework == "torch" else finish_jax
    step, numbers = getattr(job, variant)(), count()
    for _ in range(WARM_UP):
        step(next(numbers))
    time_run(step, finish, numbers)
    runs = [time_run(step, finish, numbers)]
    for number in range(rounds):
        folder = out / f"{job.name}.{variant}.{number}"
        with stepscope.profile(folder, schedule=window) as prof:
            for _ in range(RECORDED_STEPS):
                step(next(numbers))
                prof.step()
        runs.append(time_run(step, finish, numbers))
        sidecars = [json.loads(path.read_text()) for path in sorted(folder.rglob("*.stepscope.json"))]
        line = {
            "job": job.name,
            "variant": variant,
            "framework": framework,
            "runs_s": runs[-2:],
            "sidecars": sidecars,
        }
        with (out / "unprofiled.jsonl").open("a") as lines:
            lines.write(json.dumps(line) + "\n")
    release()


def main() -> int:
    """Each job in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=480)
    parser.add_argument("--one", nargs=2, metavar=("JOB", "VARIANT"))
    parser.add_argument("--score", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.score:
        return print_score(options.out)
    if options.one:
        framework, job = next(pair for pair in jobs() if pair[1].name == options.one[0])
        run_job(framework, job, options.one[1], options.out, options.rounds)
        return 0
    until = time.monotonic() + options.seconds
    for _framework, job in jobs():
        for variant in ("mended",) if job.healthy else ("slow", "mended"):
            if re.search(options.only, f"{job.name}.{variant}") and time.monotonic() < until:
                run_apart(options, job, variant)
    return 0


def run_apart(options: argparse.Namespace, job: Job, variant: str) -> None:
    """In a process of its own; a failure is said and leaves the others alone."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.steps.unprofiled",
        str(options.out),
        "--one",
        job.name,
        variant,
    ]
    command += ["--rounds", str(options.rounds)]
    begin = time.monotonic()
    try:
        child = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
        said = "" if child.returncode == 0 else child.stderr[-400:]
    except subprocess.TimeoutExpired:
        said = "took too long"
    print(f"{job.name}.{variant}: {time.monotonic() - begin:.0f} s {said}", flush=True)


def print_score(out: Path) -> int:
    """Stated against measured, job by job."""
    errors = []
    for text in (out / "unprofiled.jsonl").read_text().splitlines():
        line: dict[str, Any] = json.loads(text)
        truth = sum(line["runs_s"]) / 2
        stated, low, high = stated_step(line["sidecars"])
        if stated is None:
            print(f"{line['job']}.{line['variant']}: {truth * 1e3:.2f} ms, nothing stated")
            continue
        errors.append(abs(stated / truth - 1))
        covered = low is not None and high is not None and low <= truth <= high
        noise = abs(line["runs_s"][1] / line["runs_s"][0] - 1)
        print(
            f"{line['job']}.{line['variant']}: {truth * 1e3:.2f} ms (runs differ by {noise:.1%}), "
            f"stated {stated * 1e3:.2f} ms ({stated / truth - 1:+.1%}), spread covers it: {covered}"
        )
    if errors:
        within = sum(error <= 0.25 for error in errors)
        print(f"median error {median(errors):.1%}, {within} of {len(errors)} within 25 %")
    return 0


def stated_step(sidecars: list[dict[str, Any]]) -> tuple[float | None, float | None, float | None]:
    """The un-profiled step and the ends of its spread, in seconds, as a report would take them from the sidecar."""
    import msgspec

    from stepscope.profiles.find.sidecars import Sidecar, unprofiled_step

    for sidecar in reversed(sidecars):
        runs = msgspec.convert(sidecar, Sidecar).unprofiled
        known = unprofiled_step(runs) if runs is not None else None
        if known is not None:
            mean, low, high = (known[name] / 1e9 for name in ("mean_ns", "low_ns", "high_ns"))
            return mean, low, high
    return None, None, None


if __name__ == "__main__":
    sys.exit(main())
