"""Records the jobs of `cpu_jobs` through our capture: `python -m benchmarks.diff.record_cpu OUT` writes `OUT/JOB.CHANGE.NUMBER/`.

Each recording is a process of its own, and jobs take turns, so that recordings of one job lie apart in time as they do in life.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import stepscope
from benchmarks.diff.cpu_jobs import CONFIRMING, JOBS

STEPS = 10
WARM_UP = 6


def record(job: str, change: str, folder: Path) -> None:
    """A window of steps of a warm job; `batch` has twice the samples."""
    make, batch = JOBS[job]
    step, batches = make(2 * batch if change == "batch" else batch)
    plan = stepscope.schedule(skip=WARM_UP, warmup=1, active=STEPS)
    with stepscope.profile(folder, schedule=plan) as prof:
        for _, each in zip(range(WARM_UP + 1 + STEPS), prof.input(batches), strict=False):
            step(each)
            prof.step()


def main() -> None:
    """All of them, or one here."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--one", nargs=3, metavar=("JOB", "CHANGE", "NUMBER"))
    parser.add_argument("--jobs", nargs="*", default=list(JOBS))
    parser.add_argument(
        "--confirming",
        dest="jobs",
        action="store_const",
        const=list(CONFIRMING),
        help="only jobs that nothing was calibrated on",
    )
    parser.add_argument("--same", type=int, default=6, help="recordings of the unchanged job")
    parser.add_argument("--changed", type=int, default=1, help="recordings of each change")
    options = parser.parse_args()
    if options.one:
        job, change, number = options.one
        record(job, change, options.out / f"{job}.{change}.{number}")
        return
    wanted = [("none", number) for number in range(options.same)]
    wanted += [("batch", number) for number in range(options.changed)]
    for change, number in wanted:
        for job in options.jobs:
            one = ["--one", job, change, str(number)]
            command = [sys.executable, "-m", "benchmarks.diff.record_cpu", str(options.out), *one]
            ended = subprocess.run(command, check=False, capture_output=True, text=True)
            print(*one[1:], ended.returncode, ended.stderr[-300:] if ended.returncode else "", flush=True)


if __name__ == "__main__":
    main()
