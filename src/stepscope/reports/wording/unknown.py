"""What the recording does not show, in words, and how to record it."""

from __future__ import annotations

from stepscope.registers.policy.capture import COVERAGE_GAP
from stepscope.registers.policy.findings import WORTH_A_FINDING
from stepscope.registers.policy.tables import IDLE_NAMED, LEAST_UNKNOWN, WORTH_NAMING
from stepscope.reports.model.report import Gap, Report
from stepscope.reports.wording.values import share

_PARTLY = {
    "device_time": "the op of {share} of device time",
    "memory": "memory of {share} of allocations",
    "shapes": "shapes of {share} of ops",
    "stacks": "stacks of {share} of ops",
    "step_time": "{share} of step time",
    "runtime": "the time of {share} of ops",
    "ranks": "{share} of ranks",
    "collectives": "communication",
}
_WHOLE = {
    "device_time": "the ops behind device time",
    "memory": "memory",
    "shapes": "shapes of ops",
    "stacks": "stacks",
    "step_time": "where step time goes",
    "runtime": "the time of ops",
    "collectives": "communication",
}


def what_is_unknown(report: Report) -> list[str]:
    """The gaps worth a word: what another recording would close first, then the largest."""
    gaps = [gap for gap in report.coverage.gaps if gap.share >= (IDLE_NAMED if gap.fix else WORTH_NAMING)]
    if any(device.peak_bytes for device in report.memory.devices):
        gaps = [gap for gap in gaps if gap.what != "memory" or gap.fix]
    found = [_gap(gap, report) for gap in sorted(gaps, key=lambda gap: (not gap.fix, -gap.share))]
    return [*found, *_work(report)]


def _gap(gap: Gap, report: Report) -> str:
    """What is missing; why, where a setting of the recording would change it."""
    if gap.what == "ranks":
        what = "waiting apart from transfer" if _waits_alone(report) else "other ranks"
        return f"{what} ({gap.reason.removesuffix('.')})"
    missing = min(1.0, gap.share)
    words = _WHOLE if missing > 1 - COVERAGE_GAP else _PARTLY
    what = words.get(gap.what, gap.what.replace("_", " ")).format(share=share(missing))
    return f"{what} ({_lowered(gap.reason.removesuffix('.'))})" if gap.fix and gap.reason else what


def _waits_alone(report: Report) -> bool:
    """Whether a single rank communicates: how long it waits for the others in that, only their profiles show."""
    shares = (row.share for row in report.breakdown if row.part in ("collective", "host_collective"))
    return len(report.profile.ranks) == 1 and sum(shares) >= WORTH_A_FINDING


def _lowered(text: str) -> str:
    """For the middle of a sentence; names of settings stay as they are."""
    return text[:1].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text


def _work(report: Report) -> list[str]:
    """Kernels without FLOPs and bytes."""
    known = report.roofline.known_share
    if known is None or 1 - known < LEAST_UNKNOWN:
        return []
    if 1 - known > 1 - COVERAGE_GAP:
        return ["FLOPs and bytes of kernels"]
    return [f"FLOPs and bytes of {share(1 - known)} of kernel time"]
