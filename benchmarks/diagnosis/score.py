"""How good the diagnosis is over recorded jobs: the planted cause first, the promised speed-up near the measured one.

  python -m benchmarks.diagnosis.score [FOLDER] [--only REGEX]

Prints the table of benchmarks.trial: promised and measured, job by job. These jobs have guided the rules, and the gain of each
was measured once: a trial with new jobs says more (`python -m benchmarks.trial.score`).
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
from benchmarks.trial.interval import measured_once, promise
from benchmarks.trial.look import look as look_at
from benchmarks.trial.table import Row, bound, lines, total_lines, totals
from stepscope.reports.model.report import Finding, Report

RECORDED = FIXTURES / "diagnosis"  # a few jobs; `open_set` has all
SETS = ("diagnosis", "diagnosis_heldout")
OUTSIDE = 0.15
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
        """The measured speed-up is in the promised interval, or at most 15 % outside."""
        found = promise(self.slow[0]) if self.first else None
        return found is not None and found.low / (1 + OUTSIDE) <= self.measured <= found.high * (1 + OUTSIDE)

    @property
    def gone(self) -> bool:
        """The mended job does not get the finding."""
        return all(finding.code != self.code for finding in self.mended)

    def line(self) -> str:
        """For people."""
        promised = promise(self.slow[0]).text() if self.first else None
        others = ", ".join(f"{one.code} {promise(one).text()}x" for one in self.slow[not self.first :][:3])
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


def judge(folder: Path, job: dict[str, Any], look: Callable[[Path], Report] = reported) -> Verdict:
    """Look at both variants of a job with a planted bottleneck."""
    return Verdict(
        job["name"],
        job["code"],
        gain_of(job),
        look(recorded(folder, job, "slow")).findings,
        look(recorded(folder, job, "mended")).findings,
    )


def loud(found: list[Finding]) -> list[Finding]:
    """Findings that would alarm the owner of a healthy job."""
    return [one for one in found if one.class_ != "advice" and one.share > LOUD]


def row(folder: Path, job: dict[str, Any]) -> Row:
    """The job as the table has it: the slow variant, or the only one of a healthy job."""
    variant = "mended" if job["healthy"] else "slow"
    seen, step = look_at(recorded(folder, job, variant)), job[f"{variant}_ns"]
    return Row(
        name=job["name"],
        healthy=job["healthy"],
        truth=None if job["healthy"] else measured_once(gain_of(job)),
        findings=seen.findings,
        expect=(job["code"],) if job["code"] else (),
        bound=bound(seen.busy_ns, step),
        replayed_ns=seen.replayed_ns,
        unprofiled_ns=step,
    )


def gain_of(job: dict[str, Any]) -> float:
    """The measured speed-up of the fix, per sample."""
    before, after = job["samples"]
    ratio: float = job["slow_ns"] / job["mended_ns"] * after / before
    return ratio


def is_there(folder: Path, job: dict[str, Any]) -> bool:
    """Whether the profile that is looked at was kept."""
    return any(folder.glob(f"{job['name']}.{'mended' if job['healthy'] else 'slow'}.*.gz"))


def main() -> None:
    """Print promised and measured for each job, and the totals."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", help="default: all recorded jobs")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    folders = [options.folder] if options.folder else [open_set(name) for name in SETS]
    known = [
        (folder, job) for folder in folders for job in jobs(folder, options.only) if is_there(folder, job)
    ]
    rows = [row(folder, job) for folder, job in known]
    print(*lines(rows), "", *total_lines(totals(rows)), sep="\n")


if __name__ == "__main__":
    main()
