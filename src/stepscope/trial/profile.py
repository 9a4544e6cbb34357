"""The profile that a trial begins with: what its findings advise, and what that promises."""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stepscope.capture.launch.environment import END, Plan, environment
from stepscope.errors import StepscopeError
from stepscope.reports.model.report import Finding, Report
from stepscope.safe import safe
from stepscope.trial.run import job_environment, wait_for

_FIRST, _LAST = 10, 15
_FRAMEWORKS = {"pytorch": "torch", "torch": "torch", "tensorflow": "tensorflow", "jax": "jax"}


@dataclass(frozen=True)
class Recorded:
    """What the recording says: findings, frameworks by the names of changes, and the device."""

    findings: list[Finding] = field(default_factory=list)
    frameworks: list[str] = field(default_factory=list)
    device: str = ""


def record_findings(command: Sequence[str], folder: Path, timeout_s: float) -> Recorded:
    """Record a few steps of the job; an error where nothing could be recorded."""
    from stepscope.profiles.load import load

    with tempfile.TemporaryDirectory(prefix="stepscope-try-") as place:
        logs = Path(place) / "logs"
        plan = Plan(str(logs), _FIRST, _LAST, "", {})
        env = environment(plan, job_environment(os.environ, Path(place))) | {
            END: str(Path(place) / "scratch")
        }
        code, tail = wait_for(command, env, timeout_s, folder)
        last = "\n".join(f"  {safe(line)}" for line in tail)
        if code is None:
            raise StepscopeError(
                f"The job did not get to step {_LAST} within {timeout_s:.0f} s.", fix=last or None
            )
        if code:
            raise StepscopeError(f"The job ended with exit code {code}.", fix=last or None)
        try:
            report = load(str(logs), cache=False).report()
        except StepscopeError as error:
            raise StepscopeError(f"Nothing was recorded. {error.what}", fix=last or error.fix) from None
    framework = _FRAMEWORKS.get((report.profile.framework or "").lower())
    return Recorded(list(report.findings), [framework] if framework else [], _device(report))


def _device(report: Report) -> str:
    """The accelerator's name; without one, the processor's architecture."""
    names = [device.get("name") for device in report.profile.devices if device.get("kind") != "cpu"]
    known = next((name for name in names if isinstance(name, str) and name), None)
    return known or f"CPU ({platform.machine()})"
