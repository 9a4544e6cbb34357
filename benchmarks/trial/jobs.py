"""The jobs of a trial: a Python file each, or the jobs of benchmarks.diagnosis.

A file defines FRAMEWORK, KIND, HEALTHY, MISTAKE, FIX and `build(fixed)`, which returns `step(i)`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.diagnosis.job import Job, Step

SETS = {"tuned": "{}_jobs", "heldout": "heldout_{}"}
FRAMEWORKS = ("torch", "jax", "tensorflow")
SET_FRAMEWORKS = ("torch", "jax")


@dataclass(frozen=True)
class Spec:
    """Where a job is found: a file, or a name in a set of benchmarks.diagnosis."""

    name: str
    path: str = ""
    set: str = ""
    framework: str = ""

    def text(self) -> str:
        """For the command line of a worker."""
        return json.dumps(asdict(self))


@dataclass(frozen=True)
class TrialJob:
    """A job, imported; `expect` are codes of findings that name its mistake, where the author knew them."""

    name: str
    framework: str
    kind: str
    healthy: bool
    mistake: str
    fix: str
    build: Callable[[bool], Step]
    samples: tuple[int, int] = (1, 1)
    expect: tuple[str, ...] = ()

    def facts(self) -> dict[str, Any]:
        """What is written down of it."""
        return {name: value for name, value in vars(self).items() if name != "build"}


def list_files(folder: Path, only: str = "") -> list[Spec]:
    """The jobs in a folder, without importing them."""
    found = sorted(path for path in folder.glob("*.py") if re.match(r"\d", path.name))
    return [
        Spec(path.stem, path=str(path.resolve()), framework=_framework_of(path))
        for path in found
        if re.search(only, path.stem)
    ]


def _framework_of(path: Path) -> str:
    """As the file says; empty where it does not say so plainly."""
    named = re.search(r"^FRAMEWORK\s*=\s*[\"'](\w+)", path.read_text("utf-8"), re.MULTILINE)
    return named[1] if named and named[1] in FRAMEWORKS else ""


def list_set(chosen: str, only: str = "") -> list[Spec]:
    """The jobs of a set. Their modules import frameworks, and one that is not installed costs its jobs."""
    found = []
    for framework in SET_FRAMEWORKS:
        command = [sys.executable, "-m", "benchmarks.trial.jobs", chosen, framework]
        child = subprocess.run(command, capture_output=True, text=True, check=False)
        if child.returncode:
            print(f"{chosen}, {framework}: {child.stderr.strip()[-200:]}", file=sys.stderr)
            continue
        names = json.loads(child.stdout.splitlines()[-1])
        found += [Spec(name, set=chosen, framework=framework) for name in names if re.search(only, name)]
    return found


def load(spec: Spec) -> TrialJob:
    """Import the job, and with it its framework."""
    return _load_file(Path(spec.path), spec.name) if spec.path else _adapt(spec)


def _load_file(path: Path, name: str) -> TrialJob:
    # By name, so that worker processes of a loader can import its data set, too.
    sys.path.insert(0, str(path.parent))
    module: Any = import_module(path.stem)
    return TrialJob(
        name=name,
        framework=module.FRAMEWORK,
        kind=getattr(module, "KIND", "training"),
        healthy=bool(getattr(module, "HEALTHY", False)),
        mistake=getattr(module, "MISTAKE", ""),
        fix=getattr(module, "FIX", ""),
        build=module.build,
    )


def _adapt(spec: Spec) -> TrialJob:
    job = next(job for job in set_jobs(spec.set, spec.framework) if job.name == spec.name)

    def build(fixed: bool) -> Step:
        return job.mended() if fixed or job.healthy else job.slow()

    return TrialJob(
        name=job.name,
        framework=spec.framework,
        kind="training",
        healthy=job.healthy,
        mistake=job.code,
        fix="",
        build=build,
        samples=job.samples,
        expect=(job.code,) if job.code else (),
    )


def set_jobs(chosen: str, framework: str) -> tuple[Job, ...]:
    """The jobs of one framework in a set of benchmarks.diagnosis."""
    found: tuple[Job, ...] = import_module(f"benchmarks.diagnosis.{SETS[chosen].format(framework)}").JOBS
    return found


if __name__ == "__main__":
    print(json.dumps([job.name for job in set_jobs(*sys.argv[1:])]))
