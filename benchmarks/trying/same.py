"""Trials in which nothing is changed: the interval should contain 1 in 19 of 20.

  python -m benchmarks.trying.same [--trials 20] [--rounds 3] [--seconds 1]

Each trial starts a small job seven times. Other work on the machine is welcome: the interval is to be right there as well.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.promises import Promise
from stepscope.trial.conduct import Outcome, Runner, conduct
from stepscope.trial.run import Ran, run_once
from stepscope.trial.text import interval_words

JOB = """
import stepscope

while True:
    total = sum(each * each for each in range(200_000))
    stepscope.step()
"""
LEAST_HITS = 0.95
TIMEOUT_S = 120


def make_same(folder: Path, seconds: float) -> Runner:
    """Runs the job as it is, whatever change is asked for."""
    (folder / "job.py").write_text(JOB, "utf-8")
    limits = {"warmup": 3, "steps": 20, "least_s": seconds, "most_s": 20.0}

    def run(_changes: Sequence[str]) -> Ran:
        return run_once([sys.executable, "job.py"], (), timeout_s=TIMEOUT_S, folder=folder, limits=limits)

    return run


def try_same(trials: int, rounds: int, seconds: float) -> Iterator[Outcome]:
    """One outcome after the other."""
    with tempfile.TemporaryDirectory(prefix="stepscope-same-") as place:
        run = make_same(Path(place), seconds)
        for _ in range(trials):
            yield conduct({"nothing": None}, run, rounds, lambda _: None, Path(place))


def is_hit(outcome: Outcome) -> bool:
    """Whether the interval contains 1."""
    found = outcome.tried[0].measured
    return found is not None and found.low <= 1 <= found.high


def line(outcome: Outcome) -> str:
    """One trial."""
    (found,) = outcome.tried
    verdict = found.verdict(outcome.unchanged)
    word = "contains 1" if is_hit(outcome) else "excludes 1"
    return f"{interval_words(found.measured):20} {word}; {verdict}; unchanged runs differ by {100 * outcome.unchanged:.1f} %"


def main() -> int:
    """Print each trial and the share that contains 1."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0)
    asked = parser.parse_args()
    hits = verdicts = 0
    for number, outcome in enumerate(try_same(asked.trials, asked.rounds, asked.seconds), 1):
        hits += is_hit(outcome)
        verdicts += outcome.tried[0].verdict(outcome.unchanged) != "within noise"
        print(f"{number:3}  {line(outcome)}", flush=True)
    print(f"{hits} of {asked.trials} intervals contain 1; {verdicts} wrong verdicts")
    kept = Promise("intervals of unchanged jobs that contain 1", hits / asked.trials, LEAST_HITS, at_least=True, unit="")  # fmt: skip
    print(kept.line())
    return 0 if kept.kept else 1


if __name__ == "__main__":
    sys.exit(main())
