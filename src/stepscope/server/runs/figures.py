"""What the list of runs shows of each: a few figures of its report, kept next to it, so that the list never reads a profile."""

from __future__ import annotations

from typing import Any

import msgspec

from stepscope.gate.trend import StepNoise, measure_steps
from stepscope.profiles.load import load_run
from stepscope.registers.policy.tables import REPORT_ROWS
from stepscope.reports.build import report
from stepscope.reports.kept import Asked, KeptReports, kept_reports
from stepscope.reports.model.report import Report
from stepscope.server.runs.listed import ListedRun

# Raise it when the figures are taken from the report in another way.
VERSION = 1
_LONGEST_COMMIT = 40
_COMMITS = ("git_commit", "git_sha", "commit")


class FirstFinding(msgspec.Struct, kw_only=True, frozen=True):
    """The finding that the report has first."""

    code: str
    title: str
    low: float
    mid: float
    high: float
    is_advice: bool


class RunFigures(msgspec.Struct, kw_only=True, frozen=True):
    """A run in a line. `parts` are shares of the step."""

    step_ns: int | None = None
    basis: str = ""
    steps: int = 0
    p90_ns: int | None = None
    busy_share: float | None = None
    mfu: float | None = None
    parts: dict[str, float] = {}
    finding: FirstFinding | None = None
    findings: int = 0
    problems: int = 0
    peak_bytes: int | None = None
    capacity_bytes: int | None = None
    devices: str = ""
    framework: str | None = None
    ranks: int = 0
    recorded_unix_ns: int | None = None
    commit: str | None = None
    noise: StepNoise | None = None


def figures_of(report: Report) -> RunFigures:
    """The line of a report."""
    steps, profile = report.steps, report.profile
    memory = _fullest(report)
    has_steps = steps.source not in ("none", "whole")
    return RunFigures(
        step_ns=steps.basis_ns if has_steps else None,
        basis=steps.basis,
        steps=steps.count,
        p90_ns=steps.p90_ns if has_steps else None,
        busy_share=report.device.busy_share,
        mfu=report.roofline.mfu if report.device.mfu is None else report.device.mfu,
        parts={row.part: row.share for row in report.breakdown if row.ns},
        finding=_first(report),
        findings=len(report.findings),
        problems=sum(problem.severity in ("error", "warning") for problem in report.problems),
        peak_bytes=memory[0],
        capacity_bytes=memory[1],
        devices=", ".join(map(_device, profile.devices)),
        framework=profile.framework,
        ranks=len(profile.ranks),
        recorded_unix_ns=profile.recorded_unix_ns,
        commit=_commit(profile.versions) or _commit(profile.capture_options),
        noise=measure_steps(report),
    )


def _first(report: Report) -> FirstFinding | None:
    found = next(iter(report.findings), None)
    if found is None:
        return None
    gain = found.speedup
    return FirstFinding(
        code=found.code,
        title=found.title,
        low=gain.low,
        mid=gain.mid,
        high=gain.high,
        is_advice=found.class_ == "advice",
    )


def _fullest(report: Report) -> tuple[int | None, int | None]:
    """Peak and capacity of the device that took most; the host counts where there is no device."""
    known = [each for each in report.memory.devices if each.peak_bytes is not None]
    on_devices = [each for each in known if each.device_kind != "cpu"] or known
    most = max(on_devices, key=lambda each: each.peak_bytes or 0, default=None)
    return (None, None) if most is None else (most.peak_bytes, most.capacity_bytes)


def _device(facts: dict[str, Any]) -> str:
    """The name, and how many of them were used."""
    count, name = facts.get("used") or facts.get("count") or 1, str(facts.get("name") or "unknown device")
    return f"{count}× {name}" if isinstance(count, int) and count > 1 else name


def _commit(facts: dict[str, Any]) -> str | None:
    """As the capture noted it; the first where ranks disagree."""
    found = next((facts[key] for key in _COMMITS if facts.get(key)), None)
    first = found[0] if isinstance(found, list) else found
    return first[:_LONGEST_COMMIT] if isinstance(first, str) else None


class KeptFigures:
    """Figures beside the kept reports of a run, and taken from those where there are none yet."""

    def get(self, listed: ListedRun) -> RunFigures | None:
        """Those of the run as its files are now."""
        kept = _kept_of(listed)
        if kept is None:
            return None
        data = kept.answers.get(_name())
        try:
            if data is not None:
                return msgspec.json.decode(data, type=RunFigures)
        except (msgspec.MsgspecError, UnicodeError):
            pass
        made = kept.get_brief(Asked())
        return None if made is None else self._noted(kept, figures_of(made))

    def keep(self, listed: ListedRun, figures: RunFigures) -> None:
        """Keep them for the next server."""
        kept = _kept_of(listed)
        if kept is not None:
            self._noted(kept, figures)

    def _noted(self, kept: KeptReports, figures: RunFigures) -> RunFigures:
        kept.keep_bytes(_name(), msgspec.json.encode(figures))
        return figures


def make_figures(listed: ListedRun) -> RunFigures:
    """Read and analyse the run, and keep its report; what was read is let go at once."""
    made = report(load_run(listed.run), limit=REPORT_ROWS)
    kept = _kept_of(listed)
    return figures_of(made if kept is None else kept.keep(Asked(), made))


def _kept_of(listed: ListedRun) -> KeptReports | None:
    """None for a run behind a URL, where each look costs time, or where nothing can be kept."""
    return None if listed.is_remote else kept_reports(listed.run)


def _name() -> str:
    return f"figures {VERSION} of {Asked().name}"
