"""Savings of several ranks, which are compared in the time of their recordings, in that of a job without the profiler."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from stepscope.analysis.findings.finding import Finding, ranked
from stepscope.analysis.findings.rule import RESERVED
from stepscope.reports.model.job import Job
from stepscope.reports.model.report import Straggler
from stepscope.reports.ranks.job_findings import behind_causes
from stepscope.reports.ranks.straggler_finding import before_slow_steps
from stepscope.reports.sections.findings import OfRank

_SAVINGS = ("rank_saves_ns_per_step", "same_ns_per_step")  # in the evidence


def in_unprofiled_time(
    findings: Sequence[Finding], ranks: Sequence[OfRank], straggler: Straggler | None, job: Job | None
) -> list[Finding]:
    """The findings in their new order: a rank's by what the replay says of it, those of the job by the mean of all."""
    of_rank = {each.rank: each for each in ranks}
    of_job = fmean(each.step for each in ranks)
    for finding in findings:
        own = None if finding.code in RESERVED else of_rank.get(finding.evidence.get("rank", -1))
        _shorten(finding, of_job if own is None else own.share_of(finding.code))
    found = ranked(findings)
    if job is not None and job.is_replayed:
        return behind_causes(found)
    return before_slow_steps(found, straggler)


def _shorten(finding: Finding, share: float) -> None:
    finding.saves_ns_per_step = round(share * finding.saves_ns_per_step)
    converted = {name: round(share * finding.evidence[name]) for name in _SAVINGS if name in finding.evidence}
    finding.evidence = {**finding.evidence, **converted}
