"""The report's figures of the whole job."""

from __future__ import annotations

from typing import Any

from stepscope.analysis.findings.finding import Interval
from stepscope.ranks.job.answers import JobAnswers
from stepscope.ranks.job.what_if import Cause
from stepscope.registers.policy.findings import MOST_SAVED
from stepscope.reports.model.job import Job, JobCause, PipelineBubble, Role


def job_of(found: JobAnswers) -> Job:
    """Roles, bubble and causes."""
    stages = sorted(set(found.roles.stage.values()))
    ranks = found.roles.stage
    bubble = found.bubble
    return Job(
        sizes=found.roles.sizes(),
        roles=[Role(stage=stage, ranks=sorted(r for r in ranks if ranks[r] == stage)) for stage in stages],
        recorded_ns=round(found.recorded_ns),
        replayed_ns=round(found.replayed_ns),
        is_replayed=found.is_faithful,
        bubble=None
        if bubble is None
        else PipelineBubble(
            share=round(bubble.share, 4),
            by_schedule=round(min(bubble.share, bubble.even_share), 4),
            by_imbalance=round(max(0.0, bubble.share - bubble.even_share), 4),
            micro_batches=bubble.micro_batches,
        ),
        transfers_ns=None if found.transfers_ns is None else max(0, round(found.transfers_ns)),
        causes=[_cause(each, found.replayed_ns) for each in found.causes],
    )


def _cause(cause: Cause, step_ns: float) -> JobCause:
    low, mid, high = (speedup(step_ns, saved) for saved in cause.saves_ns)
    return JobCause(
        kind=cause.kind,
        ranks=sorted(cause.ranks),
        saves_ns_per_step=max(0, round(cause.saves_ns[1])),
        speedup=Interval(min(low, mid), mid, max(mid, high)),
        since=cause.since,
        facts=_facts(cause),
    )


def _facts(cause: Cause) -> dict[str, Any]:
    facts = {name: value for name, value in cause.facts.items() if name != "stages"}
    if "groups" in facts:
        facts["groups"] = [list(group) for group in facts["groups"]]
    if "ratio" in facts:
        facts["ratio"] = round(facts["ratio"], 3)
    if "stages" in cause.facts:
        facts["compute_ns"] = {str(stage): round(ns) for stage, ns in cause.facts["stages"].items()}
    return facts


def speedup(step_ns: float, saved_ns: float) -> float:
    """Of a step that is shorter by that much."""
    share = min(max(saved_ns / step_ns, 0.0), MOST_SAVED) if step_ns else 0.0
    return round(1 / (1 - share), 4)
