"""Damaged profiles through the whole pipeline: `python -m benchmarks.fuzz.pipeline --count 3000 --upto 10000`.

Every seed is a case. Which ones have passed is written down, so that the next run goes on with the others; a case that
failed is kept as a folder, with what was said, and comes up again.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from pathlib import Path

import msgspec

from benchmarks.fuzz.cases import case

_OUT = Path(".fuzz") / "pipeline"
# A worker's memory only grows: after so many cases another one goes on.
_CASES_AT_ONCE = 200
# So many cases tell whether the generator makes the same ones as before.
_CASES_COMPARED = 64
_KEPT_EVERY = 20


class State(msgspec.Struct):
    """What has passed so far, of the cases that this generator makes."""

    generator: str = ""
    passed: list[int] = []


@dataclass
class Count:
    """How it went."""

    passed: int = 0
    refused: int = 0
    failures: list[str] = field(default_factory=list)

    def note(self, failure: str) -> None:
        """Said at once: it may take long until all is said."""
        self.failures.append(failure)
        print(f"FAILED {failure}", file=sys.stderr, flush=True)


@cache
def generator() -> str:
    """Changes when the cases do."""
    digest = blake2b(digest_size=8)
    for seed in range(_CASES_COMPARED):
        for name, data in sorted(case(seed).files.items()):
            digest.update(name.encode() + data)
    return digest.hexdigest()


def state_of(path: Path) -> State:
    """As of the last run, or nothing where there was none, or one of other cases."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=State)
    except (OSError, msgspec.DecodeError):
        return State(generator())
    return found if found.generator == generator() else State(generator())


def open_seeds(state: State, count: int, upto: int) -> list[int]:
    """The next seeds to run: those below `upto` that have not passed."""
    passed = set(state.passed)
    found = (seed for seed in range(upto) if seed not in passed)
    return [seed for _, seed in zip(range(count), found, strict=False)]


def batches(seeds: list[int]) -> Iterator[list[int]]:
    """As many as one process takes."""
    for at in range(0, len(seeds), _CASES_AT_ONCE):
        yield seeds[at : at + _CASES_AT_ONCE]


def run_batch(seeds: list[int], options: argparse.Namespace, count: Count) -> Iterator[int]:
    """The seeds that passed, as they do. A process that ends early costs the case it was at; another one goes on."""
    while seeds:
        command = [
            sys.executable, "-m", "benchmarks.fuzz.worker", "--case-seconds", str(options.case_seconds),
            "--memory", str(options.memory), "--out", str(options.out), *map(str, seeds),
        ]  # fmt: skip
        told: set[int] = set()
        with tempfile.TemporaryFile("w+", errors="replace") as stderr:
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True) as worker:
                for line in worker.stdout or ():
                    word, verdict = line.rstrip("\n").split(" ", 1)
                    told.add(int(word))
                    if verdict.startswith("FAILED"):
                        count.note(f"{word}: {verdict.removeprefix('FAILED ')}")
                    else:
                        count.refused += verdict == "refused"
                        yield int(word)
            seeds = [seed for seed in seeds if seed not in told]
            if seeds:  # the process is gone, and the first of these is why
                stderr.seek(0)
                count.note(f"{seeds[0]}: exit code {worker.returncode}\n{stderr.read()[-4000:]}")
                seeds = seeds[1:]


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz.pipeline", description=__doc__)
    parser.add_argument("--count", type=int, default=3000, help="how many cases this time (3000)")
    parser.add_argument("--upto", type=int, default=10_000, help="how many have to pass in the end (10000)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    parser.add_argument("--case-seconds", type=float, default=60, help="more is a hang (60)")
    parser.add_argument("--memory", type=int, default=2048, metavar="MIB", help="more is too much (2048)")
    parser.add_argument(
        "--out", type=Path, default=_OUT, help=f"where failures and the state are kept ({_OUT})"
    )
    parser.add_argument("--again", action="store_true", help="forget what has passed")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """0 if every case passed."""
    options = parsed(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    kept = options.out / "state.json"
    state = State(generator()) if options.again else state_of(kept)
    seeds, count, end = (
        open_seeds(state, options.count, options.upto),
        Count(),
        time.monotonic() + options.seconds,
    )
    for batch in batches(seeds):
        if time.monotonic() > end:
            break
        for seed in run_batch(batch, options, count):
            count.passed += 1
            state.passed.append(seed)
            if count.passed % _KEPT_EVERY == 0:
                kept.write_bytes(msgspec.json.encode(state))
        kept.write_bytes(msgspec.json.encode(state))
        print(
            f"{len(state.passed):,} of {options.upto:,} have passed, {len(count.failures)} failed",
            file=sys.stderr,
        )
    print(
        f"{count.passed:,} cases passed ({count.refused:,} of them refused in words), {len(count.failures)} failed; "
        f"{len(state.passed):,} of {options.upto:,} have passed so far"
    )
    return 1 if count.failures else 0


if __name__ == "__main__":
    sys.exit(main())
