"""Draws many jobs, reads each once and keeps what was said of it: a first look that fits on a machine with many cores.

python -m benchmarks.ranks.physics.trial OUT --seed S [--cases 10] [--healthy 50] [--at-once 16] [--seconds 540]

A case is written, read and removed again, several at the same time; OUT gets CASE/truth.json and CASE.report.json, which
`python -m benchmarks.ranks.physics.score OUT --reuse` judges. One case of each kind in ten has 128 ranks, one has 256, and
every other kind has one of 512.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from benchmarks.ranks.physics.case import random_case
from benchmarks.ranks.physics.score import judge
from benchmarks.ranks.physics.trouble import DRAWS
from benchmarks.ranks.physics.write import write_case

_HEALTHY = "healthy"


@dataclass(frozen=True)
class Draw:
    """A job to be drawn, and where its answer goes."""

    seed: int
    kind: str
    ranks: int
    out: Path
    until: float

    def read(self) -> str | None:
        """Write, read, remove; None where the time was over before."""
        if time.time() > self.until:
            return None
        begin = time.perf_counter()
        name = f"case{self.seed}"
        with tempfile.TemporaryDirectory() as kept:
            folder = Path(kept) / name
            write_case(random_case(self.seed, self.kind, self.ranks), folder)
            verdict = judge(folder)
            (self.out / name).mkdir(parents=True, exist_ok=True)
            shutil.copy(folder / "truth.json", self.out / name)
            shutil.copy(folder.with_suffix(".report.json"), self.out)
        right = f"first {verdict.first}, ranks {verdict.ranks}, cost {verdict.cost_error}"
        return f"{name} {self.kind} of {self.ranks} ranks: {right}, {time.perf_counter() - begin:.0f} s"


def draws(options: argparse.Namespace) -> list[Draw]:
    """The largest first: they take longest."""
    until = time.time() + options.seconds
    numbered = enumerate(_kinds(options.cases, options.healthy), 1000 * options.seed)
    found = [Draw(seed, kind, ranks, options.out, until) for seed, (kind, ranks) in numbered]
    return sorted(found, key=lambda draw: -draw.ranks)


def _kinds(cases: int, healthy: int) -> Iterator[tuple[str, int]]:
    for place, kind in enumerate(DRAWS):
        for number in range(healthy if kind == _HEALTHY else cases):
            yield kind, _ranks(number % 10, place)


def _ranks(number: int, place: int) -> int:
    if number == 2 and place % 2 == 0:
        return 512
    return {0: 128, 1: 256}.get(number, 64)


def main() -> int:
    """Print each case as it is read."""
    options = _options()
    planned, read = draws(options), 0
    with ProcessPoolExecutor(options.at_once) as pool:
        for done in as_completed([pool.submit(draw.read) for draw in planned]):
            try:
                line = done.result()
            except Exception as error:
                line = f"failed: {type(error).__name__}: {error}"
            if line is not None:
                read += 1
                print(line, flush=True)
    print(f"{read} of {len(planned)} cases")
    return 0 if read == len(planned) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ranks.physics.trial",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--cases", type=int, default=10, help="of each kind of trouble")
    parser.add_argument("--healthy", type=int, default=50)
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=540, help="no case is begun after them")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
