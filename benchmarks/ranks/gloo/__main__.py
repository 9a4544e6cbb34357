"""Eight ways of being slow, in real jobs of four processes over gloo: whether rank, kind, cause and cost are read right.

python -m benchmarks.ranks.gloo [--python .venv-frameworks/bin/python] [--ways input,batch] [--recorders torch] [--delay-ms 30] [--steps 16]

Each job times healthy and slow steps in turns without a recorder, so that the gain of the fix is known, then records slow ones. A
machine that is busy with something else shows kinds at best, and no cost: there, healthy turns differ among themselves by more than
15 %, which is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import stepscope
from benchmarks.measure import ROOT
from benchmarks.ranks.gloo.ways import WAYS, WORLD, Way
from stepscope.reports.model.report import Straggler

JOB = Path(__file__).parent / "job.py"
LARGEST_COST_ERROR = 0.15
PATIENCE_SECONDS = 240


@dataclass(frozen=True)
class Outcome:
    """What was found. `gain`: what a slow step takes longer than a healthy one, as a share of it; `unsteady`: by how much healthy turns differ."""

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
    """Run the jobs one after another, print, count."""
    options = _options()
    wanted = [way for way in WAYS if not options.ways or way.name in options.ways.split(",")]
    outcomes = []
    for way in wanted:
        if (os.cpu_count() or 1) < way.least_cores:
            print(f"left out {way.name}: it takes {way.least_cores} cores", flush=True)
            continue
        for recorder in options.recorders.split(","):
            outcomes.append(_run(way, recorder, options))
            print(outcomes[-1].describe(), flush=True)
    right = sum(each.is_right for each in outcomes)
    costs = [each.cost_error for each in outcomes if each.is_right and each.cost_error is not None]
    close = sum(abs(error) <= LARGEST_COST_ERROR for error in costs)
    print(f"{right} of {len(outcomes)} right, {close} of {len(costs)} costs within {LARGEST_COST_ERROR:.0%}")
    return 0 if right == len(outcomes) and close == len(costs) else 1


def _run(way: Way, recorder: str, options: argparse.Namespace) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        times = _train(out, Path(folder) / "init", way, recorder, options)
        report = stepscope.report(out, sections=["steps", "collectives", "findings"])
    healthy, slow = (statistics.median(times[name]) for name in ("healthy", "slow"))
    unsteady = (max(times["healthy"]) - min(times["healthy"])) / healthy
    return Outcome(way, recorder, report.collectives.straggler, 1 - healthy / slow, unsteady)


def _train(
    out: Path, init: Path, way: Way, recorder: str, options: argparse.Namespace
) -> dict[str, list[int]]:
    """The times that rank 0 measured."""
    slow = "" if way.rank is None else str(way.rank)
    rest = [way.name, slow, recorder, str(options.delay_ms), str(options.steps)]
    paths = {"PYTHONPATH": str(ROOT / "src"), "GLOO_SOCKET_IFNAME": "lo"}
    processes = []
    for rank in range(WORLD):
        numbers = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(WORLD)}
        command = [options.python, str(JOB), str(out), str(init), str(rank), str(WORLD), *rest]
        env = os.environ | paths | numbers
        processes.append(
            subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )
    return _wait(processes)


def _wait(processes: list[subprocess.Popen[str]]) -> dict[str, list[int]]:
    end = time.monotonic() + PATIENCE_SECONDS
    try:
        outputs = [each.communicate(timeout=max(1.0, end - time.monotonic())) for each in processes]
    finally:
        for each in processes:  # one that failed leaves the others waiting for it
            each.kill()
    failed = [err for each, (_, err) in zip(processes, outputs, strict=True) if each.returncode]
    if failed:
        raise SystemExit(failed[0][-2000:])
    times: dict[str, list[int]] = json.loads(outputs[0][0].strip().splitlines()[-1])
    return times


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ranks.gloo", description=__doc__)
    parser.add_argument(
        "--python", default=str(ROOT / ".venv-frameworks/bin/python"), help="one that has torch"
    )
    parser.add_argument("--ways", default="", help="some of the ways, separated by commas")
    parser.add_argument("--recorders", default="stepscope,torch", help="stepscope, torch, or both")
    parser.add_argument("--delay-ms", type=float, default=30.0, help="that a slow rank adds to the mean step")
    parser.add_argument("--steps", type=int, default=16, help="of each turn, and of the recording")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
