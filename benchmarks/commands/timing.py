"""One command: how long it takes, and the processor time of it and of all that it started."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.measure import ROOT


@dataclass
class Timed:
    """All runs of one command; the medians count. Processor time is the better figure on a machine with other work."""

    name: str
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)

    @property
    def wall(self) -> float:
        """Seconds on the wall."""
        return statistics.median(self.seconds)

    @property
    def cpu(self) -> float:
        """Seconds of processors, user and system."""
        return statistics.median(self.cpu_seconds)

    def line(self) -> str:
        """For the table."""
        runs = " ".join(f"{each:.2f}" for each in self.seconds)
        return f"  {self.name:32}{self.wall:9.2f} s{self.cpu:9.2f} s of processors   all runs, s: {runs}"


def run_once(
    timed: Timed, command: Sequence[str], output: Path, settings: Mapping[str, str] | None = None
) -> None:
    """One more run; a command that fails ends the benchmark."""
    begun = time.perf_counter()
    with output.open("wb") as file:
        process = subprocess.Popen(command, cwd=ROOT, env=os.environ | dict(settings or {}), stdout=file)
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{timed.name} failed with exit code {process.returncode}")
    timed.seconds.append(time.perf_counter() - begun)
    timed.cpu_seconds.append(used.ru_utime + used.ru_stime)
