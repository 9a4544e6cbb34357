"""Random profiles of 64 ranks with a known truth: how many are read rightly. Fails below what is promised.

python -m benchmarks.ranks [--cases 100] [--healthy 100] [--ranks 64] [--workers 2] [--seed N]

Cases are new in each run, unless a seed is given: nothing can be fitted to them.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import secrets
import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict

from benchmarks.measure import ROOT
from benchmarks.promises import Promise, percent
from benchmarks.ranks.score import CLOCK_ERROR_NS, Row, scored

WANTED = 95.0
KINDS = ("always", "sometimes", "data-dependent")
WORK = ROOT / ".bench"


def main() -> int:
    """Make, read, count, print."""
    options = _options()
    seed = secrets.randbelow(2**31) if options.seed is None else options.seed
    print(
        f"{options.cases} cases with a late rank, {options.healthy} without, {options.ranks} ranks, --seed {seed}"
    )
    wanted = [(seed, at, KINDS[at % len(KINDS)], options.ranks) for at in range(options.cases)]
    wanted += [(seed, at, "healthy", options.ranks) for at in range(10_000, 10_000 + options.healthy)]
    wanted.sort(key=lambda each: each[1] % 10_000)  # in turns, so that also the first half tells all
    os.environ["POLARS_MAX_THREADS"] = "1"
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.workers, mp_context=spawn) as pool:
        rows = []
        for row in pool.map(scored, wanted):
            rows.append(_shown(row))
            if len(rows) % 20 == 0:
                right = sum(each.right for each in rows)
                print(f"{len(rows)} of {len(wanted)} read, {right} rightly", file=sys.stderr, flush=True)
    promises = _promises(rows)
    for promise in promises:
        print(promise.line())
    WORK.mkdir(exist_ok=True)
    kept = [asdict(promise) | {"kept": promise.kept} for promise in promises]
    (WORK / "ranks.json").write_text(json.dumps(kept, indent=1))
    return 1 if any(promise.required and not promise.kept for promise in promises) else 0


def _promises(rows: Sequence[Row]) -> list[Promise]:
    late = [row for row in rows if row.kind != "healthy"]
    well = [row for row in rows if row.kind == "healthy"]
    for kind, count in Counter(row.kind for row in rows).items():
        print(f"  {kind}: {percent([row.right for row in rows if row.kind == kind]):.1f} % of {count} right")
    named = [row.told / row.cost for row in late if row.right]
    if named:
        print(f"  what it costs: told {statistics.median(named):.2f} times the truth in the median")
    print(f"  residual stated: {max(row.residual_ns for row in rows) / 1000:.1f} µs at most")
    found = [
        Promise("ranks: straggler and kind named", percent([row.right for row in late]), WANTED, True, " %"),
        Promise("ranks: its cause named too", percent([row.right_cause for row in late]), WANTED, True, " %", False),
        Promise("ranks: nobody named where all is well", percent([row.right for row in well]), WANTED, True, " %"),
    ]  # fmt: skip
    worst = max(row.clock_error_ns for row in rows)
    bus = max(row.bus_error for row in rows)
    return [
        *found,
        Promise("ranks: worst error of a clock", worst / 1000, CLOCK_ERROR_NS / 1000, False, " µs"),
        Promise("ranks: worst error of a bus bandwidth", 100 * bus, 0.1, False, " %"),
    ]


def _shown(row: Row) -> Row:
    """What went wrong is told at once."""
    wrong_cause = not row.right_cause and row.kind != "healthy"
    if not row.right or wrong_cause or row.clock_error_ns > CLOCK_ERROR_NS:
        print(("cause " if row.right else "WRONG ") + f"clock {row.clock_error_ns}: {row.text}", flush=True)
    return row


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ranks", description=__doc__)
    parser.add_argument("--cases", type=int, default=100, help="profiles in which somebody is late")
    parser.add_argument("--healthy", type=int, default=100, help="profiles in which nobody is")
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, help="to have the cases of another run again")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
