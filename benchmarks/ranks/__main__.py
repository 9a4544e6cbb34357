"""Random profiles of 64 ranks with a known truth: how many are read rightly. Fails below what is promised.

python -m benchmarks.ranks [--cases 100] [--healthy 100] [--ranks 64] [--workers 2]
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

from benchmarks.ranks.score import Row, scored

WANTED = 0.95
KINDS = ("always", "sometimes", "data-dependent")


def main() -> int:
    """Make, read, count, print."""
    options = _options()
    wanted = [(seed, KINDS[seed % len(KINDS)], options.ranks) for seed in range(options.cases)]
    wanted += [(10_000 + seed, "healthy", options.ranks) for seed in range(options.healthy)]
    os.environ["POLARS_MAX_THREADS"] = "1"
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.workers, mp_context=spawn) as pool:
        scores = [_shown(row) for row in pool.map(scored, wanted)]
    late = [score for score in scores if score[0] != "healthy"]
    well = [score for score in scores if score[0] == "healthy"]
    clocks = max(score[3] for score in scores)
    shares = {
        "straggler and kind named": _share(late, 1),
        "cause named too": _share(late, 2),
        "nobody named where all is well": _share(well, 1),
    }
    for what, share in shares.items():
        print(f"{what}: {share:.1%}")
    for kind, count in Counter(score[0] for score in late).items():
        print(f"  {kind}: {_share([s for s in late if s[0] == kind], 1):.1%} of {count}")
    print(
        f"clocks: at most {clocks / 1000:.1f} µs off; bandwidth: at most {max(s[4] for s in scores):.3%} off"
    )
    kept = clocks <= 20_000 and all(shares[what] >= WANTED for what in shares if "too" not in what)
    return 0 if kept else 1


def _shown(row: Row) -> Row:
    kind, right, cause, clock, _, text = row
    if not right or (not cause and kind != "healthy") or clock > 20_000:
        print(("cause " if right else "WRONG ") + f"clock {clock}: {text}", flush=True)
    return row


def _share(rows: Sequence[Row], column: int) -> float:
    return sum(bool(row[column]) for row in rows) / len(rows) if rows else 1.0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ranks", description=__doc__)
    parser.add_argument("--cases", type=int, default=100, help="profiles in which somebody is late")
    parser.add_argument("--healthy", type=int, default=100, help="profiles in which nobody is")
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--workers", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
