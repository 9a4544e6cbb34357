"""The sentence that opens every rendering: the verdict, how long a step takes, what the device does, what to change."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stepscope.analysis.findings.finding import LATE_RUNTIME
from stepscope.analysis.parts import DURING
from stepscope.analysis.snapshot.words import at, call
from stepscope.names import short_name
from stepscope.registers.policy.findings import MAJORITY
from stepscope.registers.policy.tables import (
    IDLE_HOLDS_UP,
    IDLE_NAMED,
    LONGEST_ADVICE,
    WORTH_BLAMING,
    WORTH_PROMISING,
)
from stepscope.reports.model.memory_snapshot import KindRow, MemorySnapshot, SnapshotPeak
from stepscope.reports.model.report import BreakdownRow, Finding, LiveRow, MemoryDevice, Problem, Report
from stepscope.reports.wording.copies import exposed_copies
from stepscope.reports.wording.devices import charged_device
from stepscope.reports.wording.memory import fullest
from stepscope.reports.wording.parts import part
from stepscope.reports.wording.summary import in_order, longest_names, speedup
from stepscope.reports.wording.values import share
from stepscope.units import duration, size

_LEAST_SHARE = 1e-6  # an MFU that was rounded to zero is not zero
_CLASSES = 3  # of kernels, or ops, that are named
_DEVICE_MISSING = "Work of the device is missing from the recording: the shares below are of what the host did, whether the step waited for it or not."
_CAPTURED = "graph-capture"  # its steps are none of the job's
_HEAD = re.compile(r"^.*?(?=: |; |\. | \(|\.?$)")


def write_sentence(report: Report) -> str:
    """The verdict and the figures behind it, for people who read nothing else."""
    basis = report.steps.sentence
    if report.memory.snapshot or report.profile.format == "memory_timeline":
        return _without_account(report)
    if not report.breakdown:
        return " ".join(piece for piece in (_without_account(report), basis) if piece)
    captured = _problem(report, _CAPTURED)
    if captured is not None:
        return f"{captured.title}. {captured.cause}"
    use = _DEVICE_MISSING if _lacks_device(report) else f"{raised(_use(report))}{_kernels(report)}."
    return " ".join(piece for piece in (f"{_verdict(report)}.", basis, use, _change(report)) if piece)


def opening(report: Report) -> str:
    """The sentence; of a report that lacks the sections for it, only how long a step takes."""
    return report.sentence or report.steps.sentence


def best_finding(report: Report) -> Finding | None:
    """The first whose fix saves time that is worth a promise."""
    return next((found for found in report.findings if _promises(found)), None)


def advice(fix: str) -> str:
    """The first clause of a fix, where it is short enough to be read in passing."""
    found = _HEAD.match(fix)
    head = found[0] if found is not None else ""
    return head if len(head) <= LONGEST_ADVICE else ""


def idle_rows(report: Report) -> list[BreakdownRow]:
    """What keeps the device idle, the longest first."""
    return [row for row in in_order(report.breakdown) if not part(row.part).is_busy]


def is_kernel_bound(report: Report) -> bool:
    """Whether nothing outside the kernels (of a CPU job: the ops) holds the step up."""
    return bool(report.breakdown) and _busy(report) >= 1 - IDLE_HOLDS_UP


def _mostly_computes(report: Report) -> bool:
    """Whether the busy time is not mostly copies or communication that nothing hides."""
    computing = sum(row.share for row in report.breakdown if row.part in ("compute", "host_compute"))
    return computing >= MAJORITY * _busy(report)


def raised(text: str) -> str:
    """For the start of a sentence."""
    return text[:1].upper() + text[1:]


def _promises(finding: Finding) -> bool:
    return (
        finding.class_ == "time" and finding.saves_ns_per_step > 0 and finding.speedup.mid >= WORTH_PROMISING
    )


def _without_account(report: Report) -> str:
    error = _first_error(report)
    if error is not None:
        return f"{error.title}."
    threat = next((found for found in report.findings if found.class_ == "memory"), None)
    if threat is not None:
        return f"{threat.title}. {threat.detail}"
    if report.memory.snapshot:
        return _held(report.memory.snapshot)
    peaks = [each for each in report.memory.devices if each.peak_bytes and each.device_kind != "cpu"]
    if peaks and report.profile.format == "memory_timeline":
        return _peak(max(peaks, key=lambda each: each.peak_bytes or 0))
    return "The profile has no steps, and no work that could be accounted for."


def _held(devices: list[MemorySnapshot]) -> str:
    """The peak of the fullest device and who held it; then what the snapshot holds."""
    most = fullest(devices)
    if most.peak is None:
        return f"{size(most.allocated_bytes)} is in use on device {most.device}{_kinds(most.kinds)}."
    return (
        f"The peak on device {most.device} was {size(most.peak.bytes)}, {duration(most.peak.before_ns)} before the snapshot was taken"
        f"{_holders(most.peak)}. Then, {size(most.allocated_bytes)} was still in use."
    )


def _kinds(rows: Sequence[KindRow | LiveRow]) -> str:
    """What the largest are for; where that is unknown of all of them, it is said once."""
    known = [row for row in rows if row.kind != "cached"][:_CLASSES]
    if all(row.kind == "unknown" for row in known):
        return ", for purposes unknown" if known else ""
    return ": " + ", ".join(f"{size(row.bytes)} {call(row.kind)}" for row in known)


def _holders(peak: SnapshotPeak) -> str:
    """By kind, and by line where nothing shows a kind."""
    placed = [row for row in peak.lines if row.where is not None][:_CLASSES]
    if placed and all(row.kind == "unknown" for row in peak.kinds):
        return ": " + ", ".join(f"{size(row.bytes)} by {at(row.where)}" for row in placed if row.where)
    return _kinds(peak.kinds)


def _peak(device: MemoryDevice) -> str:
    return f"The peak is {size(device.peak_bytes or 0)}{_kinds(device.at_peak)}."


def _problem(report: Report, code: str) -> Problem | None:
    return next((problem for problem in report.problems if problem.code == code), None)


def _first_error(report: Report) -> Problem | None:
    return next((problem for problem in report.problems if problem.severity == "error"), None)


def _lacks_device(report: Report) -> bool:
    """Whether work was launched on a device and not all of it was recorded."""
    return any(each.code == "no-device-events" and each.severity == "error" for each in report.problems)


def _verdict(report: Report) -> str:
    best, error, idle = best_finding(report), _first_error(report), idle_rows(report)
    if best is not None and (
        best.speedup.mid >= WORTH_BLAMING or not idle or best.share >= idle[0].share / 2
    ):
        return best.title
    if error is not None:
        return error.title
    moving = _moving(report)
    if moving is None and is_kernel_bound(report):
        return f"Nothing outside the {_work(report)} holds the step up"
    owner = max(filter(_owns_time, report.findings), key=lambda found: found.share, default=None)
    blamed = moving or idle[0]
    if owner is not None and owner.share >= blamed.share / 2:
        return owner.title
    if moving is not None:
        return f"The longest part of the step is {_moved(report, moving)}, and nothing hides it"
    return _idle_verdict(blamed)


def _owns_time(finding: Finding) -> bool:
    """Also advice, where the part of the account would blame the host's wait for what the runtime does after the device."""
    return finding.class_ == "time" or finding.title == LATE_RUNTIME


def _moving(report: Report) -> BreakdownRow | None:
    """The copies, or the communication, that nothing hides, where no other part of the step is longer."""
    longest = max(report.breakdown, key=lambda row: row.ns)
    return longest if longest.part in ("copy", "collective") else None


def _work(report: Report) -> str:
    return "kernels" if _has_device(report) else "ops"


def _idle_verdict(worst: BreakdownRow) -> str:
    if worst.part == "unexplained":
        return "The profile does not show what happens most of the time"
    meaning = part(worst.part).meaning.removesuffix(".")
    longest = max(worst.names, key=lambda each: each.ns, default=None)
    if longest is not None and longest.place == DURING and longest.ns > MAJORITY * worst.ns:
        return f"{meaning} while the host was in {short_name(longest.name)}"
    return meaning or f"Most of the idle time is {part(worst.part).title}"


def _has_device(report: Report) -> bool:
    return all(row.part != "host_compute" for row in report.breakdown)


def _busy(report: Report) -> float:
    return min(1.0, sum(row.share for row in report.breakdown if part(row.part).is_busy))


def _use(report: Report) -> str:
    """How busy the device is, and what it waits for most."""
    busy, idle = _busy(report), idle_rows(report)
    words = []
    if busy > 0 or report.device.busy_share is not None:
        device = charged_device(report) or "the device"
        who = f"{device} is busy" if _has_device(report) else "the CPU computes"
        words.append(f"{who} {share(busy)} of the time{_mfu(report)}{_moves(report)}")
    if idle and idle[0].share >= IDLE_NAMED and not is_kernel_bound(report):
        words.append(_waits(idle[0], whole=not words))
    return " and ".join(words) or "what the device did was not recorded"


def _moves(report: Report) -> str:
    """How much of the busy time moves data and does nothing else."""
    row = _moving(report)
    return "" if row is None else f", {share(row.share)} with nothing but {_moved(report, row)}"


def _moved(report: Report, row: BreakdownRow) -> str:
    return exposed_copies(report) if row.part == "copy" else part(row.part).title


def _mfu(report: Report) -> str:
    mfu = report.device.mfu
    if mfu is not None:
        return f" (MFU {share(max(mfu, _LEAST_SHARE))})"
    return " (MFU unknown)" if is_kernel_bound(report) and _has_device(report) else ""


def _waits(row: BreakdownRow, whole: bool) -> str:
    figure = f"{share(row.share)}{' of the time' if whole else ''}"
    if row.part == "unexplained":
        return f"no event explains {figure}"
    title = part(row.part).title
    return f"{title} {'take' if title.endswith('s') else 'takes'} {figure}"


def _kernels(report: Report) -> str:
    """What the time goes to where only kernels are left to improve."""
    if not is_kernel_bound(report) or not _mostly_computes(report):
        return ""
    work, largest = _work(report), _largest(report)
    outside = "" if best_finding(report) is None else f", and nothing outside the {work} holds it up"
    if not largest:
        return outside
    return f"{outside}; {work.removesuffix('s')} time is {', '.join(largest)}"


def _largest(report: Report) -> list[str]:
    """Classes of kernels with their shares of compute; of a CPU job its ops."""
    if _has_device(report):
        shares: dict[str, float] = {}
        for row in report.roofline.rows:
            if row.op is None:
                shares.setdefault(row.class_, row.share)
        return [f"{share(value)} {name}" for name, value in list(shares.items())[:_CLASSES]]
    host = next(row for row in report.breakdown if row.part == "host_compute")
    return [f"{share(each.ns / host.ns)} {short_name(each.name)}" for each in longest_names(host, _CLASSES)]


def _change(report: Report) -> str:
    best = best_finding(report)
    if best is None:
        return ""
    what = advice(best.fix) if best.title == _verdict(report) else best.title
    return f"{what or 'Fixing that'}: speed-up {speedup(best.speedup)}."
