"""Choose the subject and its checks: the environment, a script or a profile."""

from __future__ import annotations

from stepscope.doctor import environment, profile, script
from stepscope.doctor.check import Check
from stepscope.doctor.environment.facts import FRAMEWORKS, Environment
from stepscope.doctor.environment.survey import survey
from stepscope.doctor.examine import examine
from stepscope.doctor.profile.problems import KNOWN
from stepscope.doctor.profile.subject import Examined, examine_path
from stepscope.doctor.result import Diagnosis, Result
from stepscope.doctor.script.source import is_script, read_script
from stepscope.doctor.script.subject import TrainingScript
from stepscope.profiles.load import LoadProgress
from stepscope.trace.schema import SEVERITIES


def all_checks() -> list[Check[Environment] | Check[TrainingScript] | Check[Examined]]:
    """Every check there is, group by group."""
    return [*environment.CHECKS, *script.CHECKS, *profile.CHECKS]


def diagnose(
    path: str | None = None,
    *,
    python: str | None = None,
    folder: str = ".",
    cache: bool = True,
    run: str | None = None,
    progress: LoadProgress | None = None,
) -> Diagnosis:
    """The environment without a path, else the script or the profile there.

    `python` is the interpreter to examine, our own by default; `folder` is where profiles would be written.
    """
    if path is None:
        return diagnose_environment(survey(python, folder))
    if is_script(path):
        return examine(TrainingScript(read_script(path)), script.CHECKS, path)
    return diagnose_profile(examine_path(path, cache=cache, progress=progress, run=run))


def diagnose_environment(found: Environment) -> Diagnosis:
    """What is wrong with these facts."""
    return examine(found, environment.CHECKS, "environment", _facts(found))


def diagnose_profile(found: Examined) -> Diagnosis:
    """What is wrong with the profile, or with the folder that should hold one."""
    diagnosis = examine(found, profile.CHECKS, found.path)
    # A recorder of another version may note problems without a check here; they are shown as well.
    unknown = [problem for problem in found.problems if problem.code not in KNOWN]
    diagnosis.results += [
        Result(
            each.code, "profile", each.severity, each.title, each.detail or each.title, each.fix, each.cause
        )
        for each in unknown
    ]
    diagnosis.results.sort(key=lambda result: SEVERITIES.index(result.severity))
    return diagnosis


def _facts(found: Environment) -> dict[str, str]:
    """Facts shown at the top of the diagnosis."""
    python = found.python
    facts = {"python": f"{python.version} ({python.executable})"}
    for name in (*FRAMEWORKS, "tensorboard"):
        versions = [f"{package.version}" for package in python.bringing(name)]
        facts[name] = ", ".join(versions) or "not installed"
    facts["driver"] = found.driver.version or "none"
    facts["cupti"] = ", ".join(library.path for library in found.cupti[:3]) or "none"
    return facts
