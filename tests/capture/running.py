"""Runs jobs in processes of their own: a framework that one test imports must not be found by the next."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tests.short import short_place

ROOT = Path(__file__).resolve().parents[2]
JOBS = Path(__file__).parent / "jobs"
PATIENCE_SECONDS = (
    3 * PATIENCE_S
)  # importing some frameworks takes minutes where others want the machine, too
# What launchers tell, and what would make jobs listen or record that were not asked to.
_OF_LAUNCHERS = ("SLURM_", "OMPI_", "PMI_", "PMIX_", "MV2_", "TORCHELASTIC_", "MASTER_")
_OF_OTHERS = (
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "TF_CONFIG",
    "STEPSCOPE_RUN",
    "STEPSCOPE_LAUNCH",
    "STEPSCOPE_LISTEN",
)
# Of several that take the same way, one is enough for `make test`.


def needs(*packages: str) -> pytest.MarkDecorator:
    """Skip without these; `make test` has an environment with all of them."""
    lacking = [name for name in packages if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(bool(lacking), reason=f"not installed: {', '.join(lacking)}")


def environment(**added: str) -> dict[str, str]:
    """The environment of a job: no launcher's ranks, no chatter of TensorFlow, one thread of OpenMP."""
    env = {
        name: value
        for name, value in os.environ.items()
        if name not in _OF_OTHERS and not name.startswith(_OF_LAUNCHERS)
    }
    paths = [str(ROOT / "src"), str(ROOT), env.get("PYTHONPATH", "")]
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "TMPDIR": short_place()}
    # Several processes share the cores: threads of OpenMP that wait for each other spin, and take the time of the others.
    modest = {"OMP_NUM_THREADS": "1"}
    return env | {"PYTHONPATH": os.pathsep.join(filter(None, paths))} | quiet | modest | added


def start(job: str | Path, *arguments: object, **added: str) -> subprocess.Popen[str]:
    """A job, by the name of its script or its path."""
    path = JOBS / f"{job}.py" if isinstance(job, str) else job
    return subprocess.Popen(
        [sys.executable, str(path), *map(str, arguments)],
        env=environment(**added),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(job: str | Path, *arguments: object, **added: str) -> subprocess.CompletedProcess[str]:
    """The same, to its end."""
    process = start(job, *arguments, **added)
    try:
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def told(job: str | Path, *arguments: object, **added: str) -> dict[str, Any]:
    """What the job says in the last line that it prints, as JSON."""
    ended = run(job, *arguments, **added)
    assert ended.returncode == 0, ended.stderr[-4000:]
    answer = json.loads(ended.stdout.strip().splitlines()[-1])
    assert isinstance(answer, dict)
    return answer | {"stderr": ended.stderr}


def told_by_module(job: str, *arguments: object, **added: str) -> dict[str, Any]:
    """The same, for a job that others import, too."""
    command = [sys.executable, "-m", f"tests.capture.jobs.{job}", *map(str, arguments)]
    ended = subprocess.run(
        command, env=environment(**added), capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    answer = json.loads(ended.stdout.strip().splitlines()[-1])
    assert isinstance(answer, dict)
    return answer


def sidecars(folder: Path) -> list[dict[str, Any]]:
    """All notes under the folder."""
    return [json.loads(path.read_text()) for path in sorted(folder.rglob("*.stepscope.json"))]


def traces(folder: Path) -> list[Path]:
    """All traces under their final names."""
    found = [path for path in folder.rglob("*") if path.name.endswith((".trace.json", ".xplane.pb"))]
    return sorted(
        path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
