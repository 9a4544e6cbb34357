"""Random jobs whose ranks run and wait as machines do: how many are read rightly. It tells, and fails nothing.

python -m benchmarks.ranks.physical [--cases 24] [--healthy 16] [--workers 2] [--seed N]

Cases are new in each run, unless a seed is given: nothing can be fitted to them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import secrets
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

from benchmarks.promises import Promise, percent
from benchmarks.ranks.physical.score import CLOCK_ERROR_NS, Row, scored

WANTED = 95.0  # of a few dozen cases chance alone makes it less, so that no run fails for it
KINDS = ("always", "sometimes", "data-dependent")


def main() -> int:
    """Run, write, read, count, print."""
    options = _options()
    seed = secrets.randbelow(2**31) if options.seed is None else options.seed
    print(f"{options.cases} jobs with a late rank, {options.healthy} without, --seed {seed}")
    wanted = [(seed, at, KINDS[at % len(KINDS)]) for at in range(options.cases)]
    wanted += [(seed, at, "healthy") for at in range(10_000, 10_000 + options.healthy)]
    os.environ["POLARS_MAX_THREADS"] = "1"
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.workers, mp_context=spawn) as pool:
        rows = [_shown(row) for row in pool.map(scored, wanted)]
    promises = _promises(rows)
    for promise in promises:
        print(promise.line())
    return 0


def _promises(rows: Sequence[Row]) -> list[Promise]:
    late = [row for row in rows if row.kind != "healthy"]
    well = [row for row in rows if row.kind == "healthy"]
    clocks = [row.clock_error_ns <= CLOCK_ERROR_NS for row in rows]
    covered = [row.clock_error_ns <= max(row.stated_ns, CLOCK_ERROR_NS) for row in rows]
    told = {
        "straggler and kind named": [row.right for row in late],
        "nobody named where all is well": [row.right for row in well],
        "clocks within 20 µs": clocks,
        "clocks within 20 µs or what is stated": covered,
    }
    found = [
        Promise(f"physical ranks: {what}", percent(flags), WANTED, True, " %", required=False)
        for what, flags in told.items()
    ]
    cause = Promise(
        "physical ranks: its cause named too",
        percent([row.right_cause for row in late]),
        WANTED,
        True,
        " %",
        False,
    )
    return [*found, cause]


def _shown(row: Row) -> Row:
    """What went wrong is told at once."""
    if not row.right or not row.right_cause or row.clock_error_ns > CLOCK_ERROR_NS:
        word = "cause" if row.right and not row.right_cause else "clock" if row.right else "WRONG"
        print(f"{word}: {row.text}", flush=True)
    return row


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ranks.physical", description=__doc__)
    parser.add_argument("--cases", type=int, default=24, help="jobs in which somebody is late")
    parser.add_argument("--healthy", type=int, default=16, help="jobs in which nobody is")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, help="to have the cases of another run again")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
