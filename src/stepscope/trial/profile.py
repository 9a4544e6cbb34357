"""The profile that a trial begins with: what its findings advise, and what that promises."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from stepscope.capture.launch.environment import END, Plan, environment
from stepscope.errors import StepscopeError
from stepscope.reports.model.report import Finding
from stepscope.safe import safe
from stepscope.trial.run import job_environment, wait_for

_FIRST, _LAST = 10, 15
_FRAMEWORKS = {"pytorch": "torch", "torch": "torch", "tensorflow": "tensorflow", "jax": "jax"}


def record_findings(
    command: Sequence[str], folder: Path, timeout_s: float
) -> tuple[list[Finding], list[str]]:
    """Findings of the job, and its frameworks; an error where nothing could be recorded."""
    from stepscope.profiles.load import load

    with tempfile.TemporaryDirectory(prefix="stepscope-try-") as place:
        logs = Path(place) / "logs"
        plan = Plan(str(logs), _FIRST, _LAST, "", {})
        env = environment(plan, job_environment(os.environ, Path(place))) | {
            END: str(Path(place) / "scratch")
        }
        code, tail = wait_for(command, env, timeout_s, folder)
        last = "\n".join(f"  {safe(line)}" for line in tail)
        if code:
            raise StepscopeError(f"The job ended with exit code {code}.", fix=last or None)
        try:
            report = load(str(logs), cache=False).report()
        except StepscopeError as error:
            raise StepscopeError(f"Nothing was recorded. {error.what}", fix=last or error.fix) from None
    framework = _FRAMEWORKS.get((report.profile.framework or "").lower())
    return list(report.findings), [framework] if framework else []
