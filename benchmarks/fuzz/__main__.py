"""Reads damaged profiles until the time is up. A crash, a hang, too much memory or a traceback is kept as a file."""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

FIXTURES = Path(__file__).parents[2] / "tests" / "fixtures"
SAMPLES = Path(__file__).parents[2] / "src" / "stepscope" / "samples"
ENDINGS = ("*.trace.json.gz", "*.xplane.pb", "*.xplane.pb.gz", "*tfevents*")
# Large files make slow cases, and slow cases find less.
LARGEST_BYTES, LARGEST_PACKED_BYTES = 120_000, 45_000
CASES_AT_ONCE = 40


@dataclass(frozen=True)
class Failure:
    """A file that was not read as it should be, and what the process said."""

    path: Path
    says: str


def defaults() -> list[Path]:
    """The small real profiles of the tests and the samples."""
    found = [
        path for ending in ENDINGS for place in (FIXTURES, SAMPLES) for path in sorted(place.rglob(ending))
    ]
    return [path for path in found if path.stat().st_size <= _largest(path)]


def _largest(path: Path) -> int:
    return LARGEST_PACKED_BYTES if path.suffix == ".gz" else LARGEST_BYTES


def balanced(files: list[Path]) -> list[Path]:
    """Each file so often that all formats come up alike."""
    groups: dict[str, list[Path]] = {}
    for path in files:
        name = path.name.removesuffix(".gz")
        kind = (
            "events"
            if "tfevents" in name
            else "xplane"
            if name.endswith(".pb")
            else name.partition(".pt.")[1] or "json"
        )
        groups.setdefault(kind, []).append(path)
    most = max(map(len, groups.values()))
    return [path for group in groups.values() for path in (group * most)[:most]]


def batch(options: argparse.Namespace, first: int, files: list[Path]) -> Failure | None:
    """Run one process of cases."""
    command = [
        sys.executable, "-m", "benchmarks.fuzz.batch", "--first", str(first), "--count", str(CASES_AT_ONCE),
        "--case-seconds", str(options.case_seconds), "--memory", str(options.memory), "--folder", str(options.out),
        *(["--hard-limit"] if "asan" not in os.environ.get("LD_PRELOAD", "") else []), *map(str, files),
    ]  # fmt: skip
    limit = 60 + CASES_AT_ONCE * options.case_seconds
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return Failure(options.out, f"no end after {limit:.0f} s, cases from {first} on")
    if ended.returncode == 0:
        return None
    seed = (ended.stdout.split() or [str(first)])[-1]
    return Failure(options.out / f"case-{seed}", f"exit code {ended.returncode}\n{ended.stderr[-6000:]}")


def parsed() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long (60)")
    parser.add_argument(
        "--seed", type=int, default=random.SystemRandom().randrange(1 << 40), help="the first case"
    )
    parser.add_argument("--case-seconds", type=float, default=60, help="more is a hang (60)")
    parser.add_argument("--memory", type=int, default=1024, metavar="MIB", help="more is too much (1024)")
    parser.add_argument("--out", type=Path, default=Path(".fuzz"), help="where failures are kept (.fuzz)")
    parser.add_argument("files", type=Path, nargs="*", help="profiles to damage (small ones of the tests)")
    return parser.parse_args()


def main() -> int:
    """0 if every case went well."""
    options = parsed()
    options.out.mkdir(parents=True, exist_ok=True)
    files = balanced([path.resolve() for path in options.files or defaults()])
    first, end = options.seed, time.monotonic() + options.seconds
    failures: list[Failure] = []
    while (
        first == options.seed or time.monotonic() < end
    ):  # at least once, also on a machine that stands still
        failure = batch(options, first, files)
        if failure is not None:
            failures.append(failure)
            print(f"FAILED {failure.path}: {failure.says}", file=sys.stderr)
        first += CASES_AT_ONCE
    print(
        f"{first - options.seed:,} cases from seed {options.seed} on, of {len(set(files))} files: {len(failures)} failures"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
