"""Write random jobs with a known trouble, a folder of profiles and a truth.json each.

python -m benchmarks.ranks.physics OUT --cases N --seed S [--ranks 64] [--kind KIND]
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from benchmarks.ranks.physics.case import random_case
from benchmarks.ranks.physics.trouble import DRAWS
from benchmarks.ranks.physics.write import write_case


def main() -> int:
    """One case of each kind in turn."""
    options = _options()
    kinds = options.kind or list(DRAWS)
    for number in range(options.cases):
        begin = time.perf_counter()
        case = random_case(1000 * options.seed + number, kinds[number % len(kinds)], options.ranks)
        write_case(case, options.out / f"case{number}")
        took = time.perf_counter() - begin
        trouble = case.trouble
        print(
            f"case{number}: {trouble.kind} ({trouble.where or 'nothing'}), gain {case.gain:.3f}, {took:.1f} s",
            flush=True,
        )
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ranks.physics", description=__doc__)
    parser.add_argument("out", type=Path, help="folder to write to")
    parser.add_argument("--cases", type=int, default=len(DRAWS))
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--ranks", type=int, default=64, choices=(64, 128, 256, 512))
    parser.add_argument("--kind", action="append", choices=sorted(DRAWS), help="only these; may be repeated")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
