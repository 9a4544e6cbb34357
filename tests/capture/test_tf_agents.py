"""TF-Agents for real, in an environment of its own that STEPSCOPE_TF_AGENTS names: only in make soak.

python3.11 -m venv .venv-tf-agents
.venv-tf-agents/bin/pip install tf-agents==0.19.0 tensorflow==2.15.* keras==2.15.*
STEPSCOPE_SOAK=1 STEPSCOPE_TF_AGENTS=.venv-tf-agents/bin/python pytest tests/capture/test_tf_agents.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import stepscope
from tests.capture.running import JOBS, PATIENCE_SECONDS, SOAK, environment

AGREES = 0.05
PYTHON = os.environ.get("STEPSCOPE_TF_AGENTS", "")
JOB = JOBS / "tf_agents_dqn.py"
pytestmark = pytest.mark.skipif(
    not (SOAK and PYTHON), reason="only in make soak, with STEPSCOPE_TF_AGENTS=python"
)


def _ended(*command: object) -> subprocess.CompletedProcess[str]:
    ended = subprocess.run(
        [str(word) for word in command],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    return ended


def _told(*command: object) -> dict[str, Any]:
    found = json.loads(_ended(*command).stdout.strip().splitlines()[-1])
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("regions", [("train",), ("collect", "train")])
def test_regions_agree_with_the_clock_of_the_job(tmp_path: Path, regions: tuple[str, ...]) -> None:
    took = _told(PYTHON, JOB, tmp_path / "run", *regions)["took"]
    for name in regions:
        report = stepscope.report(tmp_path / "run", step_name=name)
        measured = sum(took[name]) / len(took[name])
        print(name, report.steps.count, report.steps.mean_ns, measured)  # noqa: T201
        assert (report.steps.region, report.steps.count) == (name, len(took[name]))
        assert report.steps.mean_ns == pytest.approx(measured, rel=AGREES)
        assert sum(row.ns for row in report.breakdown) == sum(row.duration_ns for row in report.steps.rows)


def test_run_records_the_loop_and_the_tab_shows_it(tmp_path: Path) -> None:
    out = tmp_path / "logs" / "dqn"
    took = _told(sys.executable, "-m", "stepscope", "run", "-o", out, "--", PYTHON, JOB, "plain")["took"]
    report = stepscope.report(out)
    assert report.profile.framework == "tensorflow"
    assert report.steps.count >= 5
    assert report.breakdown
    print(report.steps.count, report.steps.mean_ns, took["train"][10:14])  # noqa: T201
    assert _is_shown_in_the_tab(tmp_path / "logs")


def _is_shown_in_the_tab(folder: Path) -> bool:
    from tensorboard.plugins.base_plugin import TBContext

    from stepscope.tensorboard.plugin import StepscopePlugin

    return bool(StepscopePlugin(TBContext(logdir=str(folder))).is_active())
