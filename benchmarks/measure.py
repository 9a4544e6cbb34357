"""Measurements: each one a fresh process, several of them, taken in turns so that no tool has the quiet hour."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def keep_bytecode() -> None:
    """For the processes that are measured: an installed package has its bytecode, whatever this machine says."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(ROOT / "src")], check=False)


READ_BYTES = 1 << 24
LIMIT_SECONDS = 900
OURS = "stepscope"
AGAIN = "stepscope, again"
REPORT = "stepscope, with report"


@dataclass(frozen=True)
class Run:
    """What one process said."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    base_bytes: int
    says: dict[str, Any]


@dataclass
class Series:
    """All runs of one tool on one file; their median counts."""

    tool: str
    runs: list[Run] = field(default_factory=list)
    failure: str | None = None

    @property
    def seconds(self) -> float:
        """The median."""
        return statistics.median(run.seconds for run in self.runs)

    @property
    def cpu_seconds(self) -> float:
        """The median over all threads together: it tells a slow tool from a busy machine."""
        return statistics.median(run.cpu_seconds for run in self.runs)

    @property
    def peak_bytes(self) -> float:
        """The median of the whole process's peak, imports included."""
        return statistics.median(run.peak_bytes for run in self.runs)

    @property
    def load_bytes(self) -> float:
        """The median of the peak above what the process held before it loaded anything."""
        return statistics.median(run.peak_bytes - run.base_bytes for run in self.runs)


@dataclass(frozen=True)
class Tool:
    """A driver and the Python that runs it."""

    name: str
    driver: str
    python: str


def measure(peers: list[Tool], path: Path, *, rounds: int, budget_seconds: float) -> dict[str, Series]:
    """Ours and the peers in turns, until each had its rounds; a peer stops (after two) when its time is used up."""
    found = {name: Series(name) for name in (OURS, AGAIN, REPORT, *(tool.name for tool in peers))}
    for number in range(rounds):
        _open_twice(found, path)
        _explain(found, path)
        if found[OURS].failure or found[REPORT].failure:
            break
        for tool in peers:
            series = found[tool.name]
            spent = sum(run.seconds for run in series.runs)
            if series.failure is None and (number < 2 or spent < budget_seconds):
                with _alone(path) as linked:
                    _one_more(series, tool, linked)
    return found


def _open_twice(found: dict[str, Series], path: Path) -> None:
    """Our first open with an empty cache, and our second open of the same file in another process."""
    tool = Tool(OURS, "ours", sys.executable)
    with tempfile.TemporaryDirectory(prefix="stepscope-bench-") as cache:
        for name in (OURS, AGAIN):
            if found[name].failure is None:
                _one_more(found[name], tool, path, {"STEPSCOPE_CACHE": cache})


def _explain(found: dict[str, Series], path: Path) -> None:
    """Our first open and the whole report, with an empty cache."""
    with tempfile.TemporaryDirectory(prefix="stepscope-bench-") as cache:
        _one_more(
            found[REPORT], Tool(REPORT, "ours_report", sys.executable), path, {"STEPSCOPE_CACHE": cache}
        )


def one_more(
    series: Series, tool: Tool, path: Path, settings: dict[str, str] | None = None, *, alone: bool = False
) -> None:
    """One more run of the tool; `alone` where it leaves caches beside the file."""
    if not alone:
        _one_more(series, tool, path, settings)
        return
    with _alone(path) as linked:
        _one_more(series, tool, linked, settings)


def _one_more(series: Series, tool: Tool, path: Path, settings: dict[str, str] | None = None) -> None:
    _say(f"  {path.name}: {series.tool}, run {len(series.runs) + 1}")
    _warm(path)
    command = [tool.python, "-m", f"benchmarks.drivers.{tool.driver}", str(path)]
    try:
        ended = subprocess.run(
            command,
            cwd=ROOT,
            env=os.environ | (settings or {}),
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        series.failure = f"no result in {LIMIT_SECONDS} s"
        return
    lines = [line for line in ended.stdout.splitlines() if line.startswith('{"seconds"')]
    if ended.returncode or not lines:
        series.failure = (ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"])[-1]
        return
    series.runs.append(Run(**json.loads(lines[-1])))


@contextmanager
def _alone(path: Path) -> Iterator[Path]:
    """The file in a folder of its own: some peers leave caches beside it, and would find them the next time."""
    with tempfile.TemporaryDirectory(prefix="alone-", dir=path.parent) as folder:
        linked = Path(folder, path.name)
        linked.hardlink_to(path)
        yield linked


def _warm(path: Path) -> None:
    """Read the file once, so that all tools find it in the page cache alike."""
    with path.open("rb") as file:
        while file.read(READ_BYTES):
            pass


def _say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)
