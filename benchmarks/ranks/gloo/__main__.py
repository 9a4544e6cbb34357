"""Eight ways of being slow, in real jobs of four processes over gloo: whether rank, kind, cause and cost are read right.

python -m benchmarks.ranks.gloo [--python .venv-frameworks/bin/python] [--ways input,batch] [--recorders torch] [--delay-ms 30] [--steps 16]

Each job times healthy and slow steps in turns without a recorder, before and after each recording of slow ones, so that the gain of the
fix is known as it was around the recording. A machine that is busy with something else shows kinds at best, and no cost: there, healthy turns differ among themselves by more than
15 %, which is printed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import stepscope
from benchmarks.measure import ROOT
from benchmarks.ranks.gloo import record
from benchmarks.ranks.gloo.ways import WAYS, Way
from stepscope.reports.model.report import Straggler

LARGEST_COST_ERROR = 0.15


@dataclass(frozen=True)
class Outcome:
    """What was found. `gain`: what a slow step takes longer than a healthy one, as a share of it; `unsteady`: by how much the middle half of the healthy turns differ."""

    way: Way
    recorder: str
    found: Straggler | None
    gain: float
    unsteady: float

    @property
    def is_right(self) -> bool:
        """Whether rank, kind and cause are; of a healthy job, that nobody is named."""
        if self.way.rank is None or self.found is None:
            return self.way.rank is None and self.found is None
        found = self.found
        same_rank = found.rank == self.way.rank and len(found.ranks) == 1
        return same_rank and found.kind in self.way.kinds and found.cause in self.way.causes

    @property
    def cost_error(self) -> float | None:
        """Of the reported cost, relative to the gain; None where there is nothing to compare."""
        if self.found is None or self.way.rank is None or self.gain <= 0:
            return None
        return self.found.share / self.gain - 1

    def describe(self) -> str:
        """One line."""
        told = "nobody"
        if self.found is not None:
            told = f"rank {self.found.rank}, {self.found.kind}, {self.found.cause}, {self.found.share:.0%}"
        error = "" if self.cost_error is None else f", cost {self.cost_error:+.0%}"
        verdict = "right" if self.is_right else "WRONG"
        return (
            f"{verdict} {self.way.name:<10} {self.recorder:<9} {told}; measured gain {self.gain:.0%}{error}; "
            f"healthy turns differ by {self.unsteady:.0%}"
        )


def main() -> int:
    """Run the jobs one after another, or read what others ran; print, count."""
    options = _options()
    outcomes = []
    for outcome in _read(options.read) if options.read else _run_all(options):
        outcomes.append(outcome)
        print(outcome.describe(), flush=True)
    right = sum(each.is_right for each in outcomes)
    costs = [each.cost_error for each in outcomes if each.is_right and each.cost_error is not None]
    close = sum(abs(error) <= LARGEST_COST_ERROR for error in costs)
    print(f"{right} of {len(outcomes)} right, {close} of {len(costs)} costs within {LARGEST_COST_ERROR:.0%}")
    return 0 if right == len(outcomes) and close == len(costs) else 1


def _run_all(options: argparse.Namespace) -> Iterator[Outcome]:
    for way in record.ways_of(options):
        with tempfile.TemporaryDirectory() as folder:
            record.record(Path(folder), way, options)
            yield from _outcomes(Path(folder), way)


def _read(out: Path) -> Iterator[Outcome]:
    """What `record` left, as far as it came to an end."""
    for way in WAYS:
        if (out / way.name / record.TIMES).exists():
            yield from _outcomes(out, way)


def _outcomes(out: Path, way: Way) -> Iterator[Outcome]:
    of_recorders = json.loads((out / way.name / record.TIMES).read_text())
    for recordings in sorted(each for each in (out / way.name).iterdir() if each.is_dir()):
        times = of_recorders[recordings.name]
        pairs = zip(times["healthy"], times["slow"], strict=True)
        gain = statistics.median(1 - healthy / slow for healthy, slow in pairs)
        low, median, high = statistics.quantiles(times["healthy"])
        report = stepscope.report(recordings, sections=["steps", "collectives", "findings"])
        yield Outcome(way, recordings.name, report.collectives.straggler, gain, (high - low) / median)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ranks.gloo", description=__doc__)
    record.add_options(parser)
    parser.set_defaults(python=str(ROOT / ".venv-frameworks/bin/python"))
    parser.add_argument(
        "--read", type=Path, help="what benchmarks.ranks.gloo.record left, on this machine or another"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
