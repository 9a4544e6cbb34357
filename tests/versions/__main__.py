"""`python -m tests.versions`: the smoke tests with the lowest and the newest versions, on every Python that can be had."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.versions.environments import (
    Environment,
    Extensions,
    Failed,
    add_extensions,
    build_wheels,
    find_extensions,
    make_environment,
)
from tests.versions.pythons import find_python, whole_version
from tests.versions.requirements import ROOT, Project, read_project

KINDS = ("lowest", "newest")
SMOKE = ("-m", "pytest", "--noconftest", "-p", "no:cacheprovider", "tests/versions/smoke.py")
LONGEST_S = 1200
# Other packages than those of the environment, and packages compiled again by each of fifty processes.
_NOT_INHERITED = ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE")
_NOT_OURS = ("pip", "setuptools", "stepscope", "stepscope-capture")


@dataclass
class Outcome:
    """Of one environment."""

    python: str
    kind: str
    passed: bool = False
    summary: str = ""
    details: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)


def main() -> int:
    """0 if every environment that could be made passed."""
    arguments = _arguments()
    began = time.monotonic()
    project = read_project()
    found, missing = _pythons(project, arguments.python)
    if not found:
        say(f"None of these Pythons can be had here: {', '.join(missing)}.")
        return 1
    wheels = build_wheels(found[0][0], project)
    say(f"Built {wheels[0].name} in {time.monotonic() - began:.0f} s.")
    outcomes: list[Outcome] = []
    for python, version in found:
        outcomes += _try_python(python, version, wheels, project, arguments.keep)
    _summarise(outcomes, missing, time.monotonic() - began)
    return 0 if all(outcome.passed for outcome in outcomes) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.versions", description=__doc__)
    parser.add_argument(
        "--python", metavar="PYTHON", help="only this interpreter, instead of all of 3.10 to 3.14"
    )
    parser.add_argument("--keep", action="store_true", help="keep environments that passed")
    return parser.parse_args()


def say(text: str) -> None:
    """At once: what takes minutes should show where it is."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _pythons(project: Project, chosen: str | None) -> tuple[list[tuple[Path, str]], list[str]]:
    """Interpreters with their versions, and the versions for which there is none."""
    if chosen is not None:
        path = Path(shutil.which(chosen) or chosen)
        version = whole_version(path)
        return ([(path, version)], []) if version is not None else ([], [chosen])
    found = {version: find_python(version) for version in project.pythons}
    return [each for each in found.values() if each], [version for version, each in found.items() if not each]


def _try_python(
    python: Path, version: str, wheels: Sequence[Path], project: Project, keep: bool
) -> list[Outcome]:
    began = time.monotonic()
    try:
        extensions = find_extensions(python, project)
    except Failed as failure:
        return [Outcome(version, "build", summary="the hot loops could not be built", details=str(failure))]
    say(
        f"\nPython {version} ({python}): "
        f"{f'{len(extensions)} extensions' if extensions else 'no C compiler, interpreted'}, {time.monotonic() - began:.0f} s."
    )
    with ThreadPoolExecutor(min(len(KINDS), os.cpu_count() or 1)) as pool:
        tried = pool.map(lambda kind: _try(python, version, kind, wheels, extensions, project), KINDS)
        outcomes = list(tried)
    for outcome in outcomes:
        _tell(outcome, project)
        if outcome.passed and not keep:
            shutil.rmtree(ROOT / f".venv-versions-{_name(outcome)}", ignore_errors=True)
    return outcomes


def _name(outcome: Outcome) -> str:
    return f"{outcome.python}-{outcome.kind}"


def _try(
    python: Path, version: str, kind: str, wheels: Sequence[Path], extensions: Extensions, project: Project
) -> Outcome:
    """Install, and run the smoke tests there."""
    outcome = Outcome(version, kind)
    began = time.monotonic()
    # What our requirements need in turn is the newest in both: nobody can pin it for our users.
    constraints = [each.pin for each in project.requirements] if kind == "lowest" else []
    wheel, *others = wheels
    wanted = f"{wheel}[{','.join(project.extras)}]" if project.extras else str(wheel)
    try:
        environment = make_environment(python, _name(outcome), [wanted, *others, "pytest"], constraints)
        add_extensions(environment, extensions)
    except Failed as failure:
        outcome.summary, outcome.details = "cannot be installed", str(failure)
        return outcome
    outcome.versions = environment.versions
    outcome.seconds["install"] = time.monotonic() - began
    _smoke(environment, "compiled" if extensions else "interpreted", outcome)
    outcome.seconds["tests"] = time.monotonic() - began - outcome.seconds["install"]
    return outcome


def _smoke(environment: Environment, expected: str, outcome: Outcome) -> None:
    inherited = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
    try:
        ended = subprocess.run(
            [environment.python, *SMOKE],
            cwd=ROOT,
            env={**inherited, "STEPSCOPE_EXPECT": expected},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        outcome.summary, outcome.details = f"took longer than {LONGEST_S} s", str(error.stdout or "")
        return
    last = ended.stdout.strip().rpartition("\n")[2]
    outcome.passed = has_passed(ended.returncode, last)
    outcome.summary = last.strip("= ")
    outcome.details = "" if outcome.passed else ended.stdout


def has_passed(code: int, last_line: str) -> bool:
    """Whether pytest says so in both ways: an exit code of 0 without a count of tests has tested nothing."""
    return code == 0 and re.match(r"=*\s*[1-9]\d* passed", last_line) is not None


def _tell(outcome: Outcome, project: Project) -> None:
    """What it ran with, and how it ended."""
    direct = {each.name.lower() for each in project.requirements}
    groups = {"direct": direct, "indirect": set(outcome.versions) - direct - set(_NOT_OURS)}
    times = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in outcome.seconds.items())
    say(f"  {outcome.kind}: {'passed' if outcome.passed else 'FAILED'}: {outcome.summary} ({times})")
    for title, names in groups.items():
        shown = [f"{name} {outcome.versions[name]}" for name in sorted(names & set(outcome.versions))]
        if shown:
            say(f"    {title}: {', '.join(shown)}")
    if outcome.details:
        say(outcome.details)


def _summarise(outcomes: Sequence[Outcome], missing: Sequence[str], seconds: float) -> None:
    say("")
    for outcome in outcomes:
        say(
            f"{'ok    ' if outcome.passed else 'FAILED'} Python {outcome.python}, {outcome.kind}: {outcome.summary}"
        )
    for version in missing:
        say(f"NOT TRIED Python {version}: no python{version} with venv on PATH, in pyenv or in uv.")
    say(f"{sum(outcome.passed for outcome in outcomes)} of {len(outcomes)} passed in {seconds:.0f} s.")


if __name__ == "__main__":
    sys.exit(main())
