"""Findings that appeared, disappeared, remained or grew: the same finding if code and ranks are the same."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stepscope.diffs.data.model import FindingChange
from stepscope.registers.policy.diffs import FINDING_GROWN
from stepscope.registers.policy.findings import WORTH_SHOWING
from stepscope.reports.model.report import Report

_RANKS = re.compile(r"\branks? (\d+(?:(?:, | and )\d+)*)")
# The code of a finding, and the ranks that its title names.
Subject = tuple[str, str]
Changes = tuple[list[FindingChange], list[FindingChange], list[FindingChange]]


@dataclass(frozen=True)
class _Sum:
    """All findings about one subject: the first title, and what they would save together."""

    title: str
    saves_ns: int


def compare_findings(a: Report, b: Report, is_changed: bool) -> Changes:
    """Gained by B, lost by B, and those that both have; findings of one code about the same ranks are one.

    A finding near its threshold comes and goes: that is significant only if it is worth something and the runs differ.
    """
    ours, theirs = _sum_by_subject(a), _sum_by_subject(b)
    gained = [
        _make_change(
            subject, each.title, b=each.saves_ns, significant=is_changed and _matters(each.saves_ns, b)
        )
        for subject, each in theirs.items()
        if subject not in ours
    ]
    lost = [
        _make_change(
            subject, each.title, a=each.saves_ns, significant=is_changed and _matters(each.saves_ns, a)
        )
        for subject, each in ours.items()
        if subject not in theirs
    ]
    common = [
        _compare_common(subject, ours[subject], each, (a, b), is_changed)
        for subject, each in theirs.items()
        if subject in ours
    ]
    return gained, lost, common


def _compare_common(
    subject: Subject, a: _Sum, b: _Sum, reports: tuple[Report, Report], is_changed: bool
) -> FindingChange:
    """Significant where it is worth much more in one of the runs than in the other."""
    less, more = sorted((a.saves_ns, b.saves_ns))
    larger = reports[0] if a.saves_ns == more else reports[1]
    has_grown = is_changed and more > FINDING_GROWN * less and _matters(more - less, larger)
    return _make_change(subject, b.title, a=a.saves_ns, b=b.saves_ns, significant=has_grown)


def _make_change(
    subject: Subject, title: str, *, a: int | None = None, b: int | None = None, significant: bool
) -> FindingChange:
    return FindingChange(code=subject[0], title=title, a_saves_ns=a, b_saves_ns=b, significant=significant)


def _matters(saves_ns: int, report: Report) -> bool:
    return saves_ns >= WORTH_SHOWING * (report.steps.mean_ns or 0)


def _sum_by_subject(report: Report) -> dict[Subject, _Sum]:
    sums: dict[Subject, _Sum] = {}
    for finding in report.findings:
        ranks = _RANKS.search(finding.title)
        subject = finding.code, ranks[1] if ranks else ""
        before = sums.get(subject, _Sum(finding.title, 0))
        sums[subject] = _Sum(before.title, before.saves_ns + finding.saves_ns_per_step)
    return sums
