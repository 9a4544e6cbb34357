"""What the profiler may have added by itself: where the unprofiled step is unknown, a host that seems too slow may be fast enough."""

from __future__ import annotations

from stepscope.analysis.basis import RECORDED
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.replay.plan import FAST, Plan
from stepscope.registers.policy.capture import SURE_WITHOUT_PROFILER


def without_doubt(case: Case, finding: Finding, sure: Plan | None = None) -> Finding:
    """The finding; as advice without a promise, if hardly anything of its gain is left on a host that the profiler slows down most.

    `sure`: the plan to judge that by, if not what surely goes.
    """
    change = case.changes.get(finding.code)
    if case.basis.source != RECORDED or change is None:
        return finding
    plan = change.smallest if sure is None else sure
    gain = case.played[FAST] / max(1.0, plan.at(FAST).step_ns())
    if gain >= SURE_WITHOUT_PROFILER:
        return finding
    case.changes.pop(finding.code)
    withdraw(finding)
    finding.detail += " The profiler may have added all of it: stepscope's own recording, which also times steps without it, can show that."
    return finding


def withdraw(finding: Finding) -> None:
    """Leave it as advice that promises nothing."""
    finding.class_ = "advice"
    finding.speedup, finding.left_ns_per_step, finding.saves_ns_per_step = Interval(), None, 0
