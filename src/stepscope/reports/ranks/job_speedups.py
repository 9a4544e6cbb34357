"""What findings about single ranks bring the whole job: their savings replayed on all ranks that have them.

A rank that waits for others gains nothing for the job by waiting longer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stepscope.analysis.findings.finding import Finding, Interval, ranked
from stepscope.analysis.findings.rules.copies.exposed_collective import RULE as EXPOSED_COLLECTIVE
from stepscope.analysis.findings.rules.steps.step_outliers import RULE as STEP_OUTLIERS
from stepscope.ranks.job.changes import changed, with_less
from stepscope.ranks.job.course import BY_HOST
from stepscope.ranks.job.model import JobModel, mean_ns
from stepscope.registers.policy.job import SAME_GAIN
from stepscope.reports.ranks.job import speedup

# Slow steps are those of all ranks; what communication costs the job, its replay says.
_OF_JOB = (EXPOSED_COLLECTIVE.code, STEP_OUTLIERS.code)
_TIMES = {
    "input-bound": ("input_ns",),
    **dict.fromkeys(
        ("host-python", "launch-bound", "eager-execution", "optimizer-loop", "device-sync", "recompilation", "retracing", "pipeline-restart"),
        BY_HOST,
    ),
}  # fmt: skip


def with_job_speedups(
    findings: Sequence[Finding], by_rank: Mapping[int, Sequence[Finding]], model: JobModel
) -> list[Finding]:
    """The findings of ranks, each with what it brings the job, ordered by that."""
    for finding in findings:
        saved = {
            rank: float(each.saves_ns_per_step)
            for rank, mine in by_rank.items()
            for each in mine
            if each.code == finding.code and each.saves_ns_per_step > 0
        }
        if finding.class_ == "time" and saved and finding.code not in _OF_JOB:
            _promise_of_job(finding, saved, model)
    return ranked(findings)


def _promise_of_job(finding: Finding, saved: Mapping[int, float], model: JobModel) -> None:
    """What counts is what the job gains; it is worth a sentence where that is clearly less than what the rank does."""
    times = _TIMES.get(finding.code, ("compute_ns",))
    change = with_less(model, saved, times)
    step_ns = mean_ns(model.base)
    gain = step_ns - mean_ns(model.lengths(changed(model.nodes["ns"], change)))
    before = finding.saves_ns_per_step
    if before <= 0 or gain >= before:
        return
    left = max(0.0, gain) / before
    old = finding.speedup
    finding.evidence = {**finding.evidence, "rank_saves_ns_per_step": before, "rank_speedup": old.mid}
    finding.saves_ns_per_step = max(0, round(gain))
    finding.speedup = Interval(
        *(
            speedup(step_ns, left * step_ns * (1 - 1 / max(1.0, each)))
            for each in (old.low, old.mid, old.high)
        )
    )
    finding.left_ns_per_step = None
    if gain < SAME_GAIN * before:
        finding.detail += f" The whole job gains {speedup(step_ns, gain):.2f}×: other ranks, or other stages, take longer anyway."
