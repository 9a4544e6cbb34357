"""How good the diagnosis is over recorded jobs: the planted cause first, the promised speed-up near the measured one.

python -m benchmarks.diagnosis.score [FOLDER] [--only REGEX]
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import stepscope
from benchmarks.recordings.archive import FIXTURES, open_set
from stepscope.reports.model.report import Finding, Report

RECORDED = FIXTURES / "diagnosis"  # a few jobs; `open_set` has all
NEAR = 0.25
LOUD = 0.05  # of the step: a finding that a healthy job must not get


@dataclass(frozen=True)
class Verdict:
    """What became of one job."""

    name: str
    code: str
    measured: float  # the speed-up of the fix, per sample
    slow: list[Finding]
    mended: list[Finding]

    @property
    def first(self) -> bool:
        """The planted cause is the first finding."""
        return bool(self.slow) and self.slow[0].code == self.code

    @property
    def near(self) -> bool:
        """The promised speed-up is near the measured one."""
        return self.first and abs(self.slow[0].speedup / self.measured - 1) <= NEAR

    @property
    def gone(self) -> bool:
        """The mended job does not get the finding."""
        return all(finding.code != self.code for finding in self.mended)

    def line(self) -> str:
        """For people."""
        promised = self.slow[0].speedup if self.first else None
        others = ", ".join(f"{one.code} {one.speedup:.2f}x" for one in self.slow[not self.first :][:3])
        marks = " ".join(
            word if good else "-" * len(word)
            for word, good in (("first", self.first), ("near", self.near), ("gone", self.gone))
        )
        return f"{marks}  {self.name:24} {self.code:18} measured {self.measured:7.2f}x promised {promised}  {others}"


def jobs(folder: Path = RECORDED, only: str = "") -> list[dict[str, Any]]:
    """What is known of the recorded jobs."""
    listed = folder / "results.json"
    if listed.exists():
        known = json.loads(listed.read_text("utf-8"))
    else:
        known = [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))]
    return [job for job in known if re.search(only, job["name"])]


def recorded(folder: Path, job: dict[str, Any], variant: str) -> Path:
    """The profile of a variant."""
    return next(folder.glob(f"{job['name']}.{variant}.*.gz"))


def reported(path: Path) -> Report:
    """The report."""
    found: Report = stepscope.load(path, cache=False).report()
    return found


def findings(path: Path) -> list[Finding]:
    """The report's findings."""
    return reported(path).findings


def judge(folder: Path, job: dict[str, Any], look: Callable[[Path], Report] = reported) -> Verdict:
    """Look at both variants of a job with a planted bottleneck."""
    before, after = job["samples"]
    return Verdict(
        job["name"],
        job["code"],
        job["slow_ns"] / job["mended_ns"] * after / before,
        look(recorded(folder, job, "slow")).findings,
        look(recorded(folder, job, "mended")).findings,
    )


def loud(found: list[Finding]) -> list[Finding]:
    """Findings that would alarm the owner of a healthy job."""
    return [one for one in found if one.class_ != "advice" and one.share > LOUD]


def main() -> None:
    """Print a line for each job, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="default: all recorded jobs that have a fix")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    folder = options.folder or open_set("diagnosis")
    known = jobs(folder, options.only)
    verdicts = []
    for job in known:
        if job["healthy"]:
            found = loud(findings(recorded(folder, job, "mended")))
            print(
                f"{'LOUD' if found else 'calm'}  {job['name']:24} {[one.code for one in found]}", flush=True
            )
        else:
            verdicts.append(judge(folder, job))
            print(verdicts[-1].line(), flush=True)
    print(
        f"first {sum(one.first for one in verdicts)}, near {sum(one.near for one in verdicts)}, "
        f"gone {sum(one.gone for one in verdicts)} of {len(verdicts)}"
    )


if __name__ == "__main__":
    main()
