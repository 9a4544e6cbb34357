"""What the list of runs shows of each: a few figures of its report, kept beside the tables, so that the list never reads a profile.

An entry of the cache is a folder whose name begins with what it is about and ends with its state; here its manifest is all there is.
"""

from __future__ import annotations

import os
import tempfile
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from stepscope import __version__
from stepscope.analysis.kernels.measured_peaks import location
from stepscope.gate.trend import StepNoise, measure_steps
from stepscope.profiles.cache.place import default_folder, limit_bytes
from stepscope.profiles.cache.private_folder import check_private, make_private
from stepscope.reports.model.report import Report
from stepscope.server.runs.listed import ListedRun

# Raise it when the figures are taken from the report in another way.
VERSION = 1
_MANIFEST = "manifest.json"  # by which the cache knows its entries and their last use
_LARGEST = 64 << 10
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
    """Figures on disk, by the state of a run's files. Nothing here raises: what cannot be kept is computed again."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def get(self, listed: ListedRun) -> RunFigures | None:
        """Those of the run as its files are now."""
        try:
            entry = self._entry(listed)
            if entry is None:
                return None
            check_private(entry.parent)
            with (entry / _MANIFEST).open("rb") as file:
                return msgspec.json.decode(file.read(_LARGEST), type=RunFigures)
        except (OSError, RuntimeError, msgspec.MsgspecError, UnicodeError):
            return None

    def keep(self, listed: ListedRun, figures: RunFigures) -> None:
        """Keep them for the next server; the cache drops those that were used longest ago."""
        data = msgspec.json.encode(figures)
        try:
            entry = self._entry(listed)
            if entry is None or len(data) > _LARGEST or limit_bytes() <= 0:
                return
            make_private(entry.parent)
            entry.mkdir(0o700, exist_ok=True)
            handle, aside = tempfile.mkstemp(prefix=".new-", dir=entry)
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            Path(aside).replace(entry / _MANIFEST)
        except (OSError, RuntimeError):
            pass

    def _entry(self, listed: ListedRun) -> Path | None:
        """None for a run that is gone, or behind a URL, where each look costs time."""
        state = "" if listed.is_remote else listed.key()
        if not state:
            return None
        whose, how = f"figures {listed.id}", f"{state} {__version__} {VERSION} {_calibration()}"
        return (self._folder or default_folder()) / f"{_digest(whose)}-{_digest(how)}"


def _calibration() -> str:
    """Findings about compute depend on what was measured on this machine."""
    try:
        facts = location().stat()
    except (OSError, RuntimeError):
        return ""
    return f"{facts.st_mtime_ns} {facts.st_size}"


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()
