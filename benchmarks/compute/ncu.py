"""Compares our FLOPs and bytes with `ncu`'s counters, for PyTorch in eager mode. Wants one NVIDIA GPU, PyTorch and ncu; under 3 minutes.

  PYTHONPATH=src python3 -m benchmarks.compute.ncu record OUT [--only REGEX]     on the GPU: no packages of the analysis
  python3 -m benchmarks.compute.ncu read OUT                                     anywhere

`record` leaves the counters and a profile in OUT; `read` prints a row per case and writes OUT/compute.csv.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.compute import compare
from benchmarks.kernel_table import ncu

_SECONDS = 75  # for each of the two runs
_COUNTERS = "ncu.csv.gz"
_MARKS = {True: "ok ", False: "NOT", None: "-  "}


def main() -> int:
    """Count, or compare; the exit code is 1 where a case disagrees."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("record", "read"))
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    if options.what == "read":
        return _report(options.out, options.out / _COUNTERS)
    record(options.out, options.only)
    return 0


def record(out: Path, only: str) -> None:
    """Run the cases under PyTorch's profiler, then under ncu."""
    out.mkdir(parents=True, exist_ok=True)
    program = [sys.executable, "-m", "benchmarks.compute.run", str(out)]
    rest = [f"--only={only}", f"--seconds={0.8 * _SECONDS:.0f}"]
    subprocess.run([*program, "profiler", *rest], check=True, timeout=2 * _SECONDS)
    log = out / "ncu.csv"
    wanted = compare.metrics(ncu.available())
    subprocess.run(ncu.command(wanted, log, [*program, "ncu", *rest]), check=False, timeout=2 * _SECONDS)
    (out / _COUNTERS).write_bytes(gzip.compress(log.read_bytes()))
    log.unlink()


def _report(out: Path, packed: Path) -> int:
    outcome = _outcome(out)
    names = {int(number): name for number, name in outcome["names"].items()}
    mine = compare.ours(out / "compute.pt.trace.json.gz")
    rows = compare.compare(names, mine, compare.counted(ncu.read(packed)))
    with (out / "compute.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["case", "what", "ours", "counted", "ratio", "agrees"])
        table.writerows(
            [row.case, row.what, row.ours, row.counted, f"{row.ratio:.4f}", row.agrees] for row in rows
        )
    for row in rows:
        print(f"{_MARKS[row.agrees]} {row.case:<40} {row.what:<20} {_figures(row)}".rstrip())
    judged = [row for row in rows if row.agrees is not None]
    agreed = sum(row.agrees is True for row in judged)
    print(
        f"{agreed} of {len(judged)} agree; {len(rows) - len(judged)} not counted by ncu, "
        f"{sum(row.what == 'missing' for row in rows)} missing, "
        f"{len(outcome['failures'])} failed, {len(outcome['skipped'])} skipped"
    )
    return 0 if agreed == len(judged) else 1


def _outcome(out: Path) -> dict[str, Any]:
    """Which cases ran. Where ncu was stopped before it could say so, the profiler's run says which should have."""
    counted = out / "ncu.json"
    if not counted.exists():
        print("ncu was stopped before its last case: what it did not count is missing")
        counted = out / "profiler.json"
    found: dict[str, Any] = json.loads(counted.read_text())
    return found


def _figures(row: compare.Row) -> str:
    known = bool(row.ours or row.counted)
    return f"{row.ours:>12.4g} / {row.counted:>12.4g} = {row.ratio:.3f}" if known else ""


if __name__ == "__main__":
    sys.exit(main())
