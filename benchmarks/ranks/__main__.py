"""Random jobs of many ranks with a known truth: how many are read right. Fails below what is promised.

python -m benchmarks.ranks [--model stretched|discrete] [--cases N] [--healthy N] [--ranks 64] [--workers 2] [--seed N]

Cases are new in each run, unless a seed is given: nothing can be fitted to them. Of a few dozen discrete jobs chance alone may leave
less than the promise, so that model reports and does not fail.
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
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict

from benchmarks.measure import ROOT
from benchmarks.promises import Promise, percent
from benchmarks.ranks.case import LATE_KINDS
from benchmarks.ranks.job import Model
from benchmarks.ranks.score import CLOCK_ERROR_NS, MODELS, Row, Wanted, scored

WANTED = 95.0
WORK = ROOT / ".bench"
_FIRST_HEALTHY = 10_000


def main() -> int:
    """Make, read, count, print."""
    options = _options()
    model = MODELS[options.model]
    wanted = _wanted(model, options)
    os.environ["POLARS_MAX_THREADS"] = "1"
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.workers, mp_context=spawn) as pool:
        rows = list(_watched(pool.map(scored, wanted), len(wanted)))
    _print_summary(rows)
    promises = _promises(model, rows)
    for promise in promises:
        print(promise.line())
    WORK.mkdir(exist_ok=True)
    kept = [asdict(promise) | {"kept": promise.kept} for promise in promises]
    (WORK / f"ranks_{model.name}.json").write_text(json.dumps(kept, indent=1))
    return 1 if any(promise.required and not promise.kept for promise in promises) else 0


def _wanted(model: Model, options: argparse.Namespace) -> list[Wanted]:
    """Late and healthy ones in turns, so that the first half of a run shows both."""
    seed = secrets.randbelow(2**31) if options.seed is None else options.seed
    late = model.cases if options.cases is None else options.cases
    healthy = model.healthy if options.healthy is None else options.healthy
    print(f"{model.name}: {late} jobs with a late rank, {healthy} without, --seed {seed}")
    kinds = {at: LATE_KINDS[at % len(LATE_KINDS)] for at in range(late)}
    kinds |= dict.fromkeys(range(_FIRST_HEALTHY, _FIRST_HEALTHY + healthy), "healthy")
    wanted = [Wanted(model.name, seed, at, kind, options.ranks) for at, kind in kinds.items()]
    return sorted(wanted, key=lambda each: each.number % _FIRST_HEALTHY)


def _watched(rows: Iterator[Row], count: int) -> Iterator[Row]:
    """The rows; what went wrong is printed at once, and how far the run is every 20 jobs."""
    right = 0
    for number, row in enumerate(rows, 1):
        _print_faults(row)
        right += row.right
        if number % 20 == 0:
            print(f"{number} of {count} read, {right} right", file=sys.stderr, flush=True)
        yield row


def _print_faults(row: Row) -> None:
    if not row.right:
        print(f"WRONG {row.text}", flush=True)
    elif not row.right_cause:
        print(f"cause {row.text}", flush=True)
    elif row.clock_error_ns > CLOCK_ERROR_NS:
        print(f"clock {row.text}", flush=True)


def _print_summary(rows: Sequence[Row]) -> None:
    for kind, count in Counter(row.kind for row in rows).items():
        print(f"  {kind}: {percent([row.right for row in rows if row.kind == kind]):.1f} % of {count} right")
    named = [row.share / row.cost for row in rows if row.right and row.cost > 0]
    if named:
        print(f"  reported cost: {statistics.median(named):.2f} times the truth in the median")
    print(f"  stated residual: {max(row.residual_ns for row in rows) / 1000:.1f} µs at most")


def _promises(model: Model, rows: Sequence[Row]) -> list[Promise]:
    late = [row for row in rows if row.kind != "healthy"]
    well = [row for row in rows if row.kind == "healthy"]
    shares = {
        "straggler and kind named": ([row.right for row in late], model.required),
        "its cause named too": ([row.right_cause for row in late], False),
        "no rank named where none is late": ([row.right for row in well], model.required),
        "clocks within 20 µs": ([row.clock_error_ns <= CLOCK_ERROR_NS for row in rows], False),
        "clocks within 20 µs or what is stated": (
            [row.clock_error_ns <= max(row.stated_ns, CLOCK_ERROR_NS) for row in rows],
            False,
        ),
    }
    name = f"{model.name} ranks"
    worst = max(row.clock_error_ns for row in rows) / 1000
    bus = [100 * row.bus_error for row in rows if row.bus_error is not None]
    limit = CLOCK_ERROR_NS / 1000
    return [
        *(
            Promise(f"{name}: {what}", percent(flags), WANTED, True, " %", required)
            for what, (flags, required) in shares.items()
        ),
        Promise(f"{name}: worst error of a clock", worst, limit, False, " µs", model.required),
        *(
            [Promise(f"{name}: worst error of a bus bandwidth", max(bus), 0.1, False, " %", model.required)]
            if bus
            else []
        ),
    ]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ranks", description=__doc__)
    parser.add_argument("--model", choices=sorted(MODELS), default="stretched")
    parser.add_argument("--cases", type=int, help="jobs with a late rank (stretched 100, discrete 24)")
    parser.add_argument("--healthy", type=int, help="jobs without one (stretched 100, discrete 16)")
    parser.add_argument("--ranks", type=int, default=64, help="of stretched jobs; discrete ones have 4 to 16")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, help="repeats the cases of another run")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
