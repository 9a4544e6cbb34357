"""What every report must keep to: promises are intervals, none contradicts the account or another one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from stepscope.reports.model.report import Finding, Report

_ROUNDED = 0.0002  # shares have four places
_MOST_TIMES = 100.001


def broken(report: Report) -> list[str]:
    """All contradictions, in words."""
    return [*_of_each(report), *_ranking(report.findings), *_together(report), *_input(report)]


def step_ns(report: Report, finding: Finding) -> float:
    """The mean step of the rank that the finding is told of, on the device that the others wait for; of all ranks for a straggler."""
    rank = finding.evidence.get("rank") if finding.code != "straggler" else None
    own = {int(number): device for number, device in report.steps.critical_devices.items()}
    rows = [row for row in report.steps.rows if own[row.rank] == row.device and rank in (None, row.rank)]
    return sum(row.duration_ns for row in rows) / max(1, len(rows))


def _of_each(report: Report) -> Iterator[str]:
    for found in report.findings:
        length = step_ns(report, found)
        if not 0 <= found.share <= 1 + _ROUNDED:
            yield f"{found.code} has a share of {found.share}"
        speedup = found.speedup
        if not 1 <= speedup.low <= speedup.mid <= speedup.high <= _MOST_TIMES:
            yield f"{found.code} promises {speedup}"
        if found.class_ == "time" and (speedup.mid > 1.001) != (found.saves_ns_per_step > 0.001 * length):
            yield f"{found.code} is {found.speedup} times as fast and saves {found.saves_ns_per_step}"


def _ranking(findings: list[Finding]) -> Iterator[str]:
    timed = [found for found in findings if found.class_ == "time"]
    # Communication comes behind what makes ranks wait for each other in it.
    ranked = [found for found in timed if found.code != "exposed-collective"]
    for before, after in pairwise(ranked):
        if after.expected_ns > before.expected_ns:
            yield f"{after.code} is expected to save more than {before.code}, which comes first"
    if len({found.code for found in findings}) < len(findings):
        yield "a code is told twice"


def _together(report: Report) -> Iterator[str]:
    """Findings own disjoint time, of one rank."""
    if len(report.profile.ranks) == 1:
        owned = sum(found.share for found in report.findings if found.class_ == "time")
        if owned > 1 + len(report.findings) * _ROUNDED:
            yield f"the findings own {owned:.4f} of the step"


def _input(report: Report) -> Iterator[str]:
    """Finding, verdict, share and account say the same of the input."""
    of_account = sum(row.share for row in report.breakdown if row.part == "input")
    if abs(of_account - report.input.exposed_share) > _ROUNDED:
        yield f"the account says {of_account} of input, the pipeline {report.input.exposed_share}"
    found = next((each for each in report.findings if each.code == "input-bound"), None)
    is_bound = (
        "input-bound: " in report.input.verdict.lower()
        and "not input-bound" not in report.input.verdict.lower()
    )
    if report.steps.count and is_bound != (found is not None):
        yield f"{report.input.verdict!r} beside {found and found.title!r}"
    told = re.search(r"\((\d+ %)\)", found.detail) if found is not None else None
    if (
        told is not None
        and len(report.profile.ranks) == 1
        and f"waits for data {told[1]}" not in report.input.verdict
    ):
        yield f"the finding says {told[1]}, the verdict {report.input.verdict!r}"
