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
from tests.capture.running import JOBS, PATIENCE_SECONDS, environment
from tests.sample import SOAKS
from tests.tensorboard import conftest as boards
from tests.tensorboard.conftest import Board, Start

start = boards.start  # the fixture
AGREES = 0.05
PYTHON = os.environ.get("STEPSCOPE_TF_AGENTS", "")
JOB = JOBS / "tf_agents_dqn.py"
pytestmark = pytest.mark.skipif(
    not (SOAKS and PYTHON), reason="only in make soak, with STEPSCOPE_TF_AGENTS=python"
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


def test_run_records_the_loop_and_the_tab_shows_it(tmp_path: Path, start: Start) -> None:
    """Without a change of the job, a step is a batch; every fifth has the collection of experience in it."""
    out = tmp_path / "logs" / "dqn"
    asked_for = _told(sys.executable, "-m", "stepscope", "run", "-o", out, "--", PYTHON, JOB, "plain")[
        "asked_for"
    ]
    report = stepscope.report(out)
    assert (report.profile.framework, report.steps.count) == ("tensorflow", 6)
    # The window opens after the job asked for the first of these batches.
    measured = asked_for[16] - asked_for[11]
    recorded = sum(row.duration_ns for row in report.steps.rows if row.step > 10)
    print("batches", recorded, measured)  # noqa: T201
    assert recorded == pytest.approx(measured, rel=AGREES)
    shown = _shown_in_the_tab(start("--logdir", str(tmp_path / "logs")))
    assert shown["profile"]["framework"] == "tensorflow"
    assert (shown["steps"]["count"], shown["steps"]["mean_ns"]) == (6, report.steps.mean_ns)


@pytest.mark.parametrize("region", ["collect", "train"])
def test_the_tab_shows_the_region(tmp_path: Path, start: Start, region: str) -> None:
    took = _told(PYTHON, JOB, tmp_path / "logs" / "dqn", region)["took"][region]
    shown = _shown_in_the_tab(start("--logdir", str(tmp_path / "logs")))["steps"]
    assert (shown["region"], shown["count"]) == (region, len(took))
    assert shown["mean_ns"] == pytest.approx(sum(took) / len(took), rel=AGREES)


def _shown_in_the_tab(board: Board) -> dict[str, Any]:
    """The report that the page in the tab draws, of the only run."""
    from tests.tensorboard.test_plugin import PLUGIN, listing, runs, until

    (run,) = runs(board)["runs"]
    assert until(lambda: listing(board)["stepscope"], lambda tab: tab["enabled"])["enabled"]
    assert board.get(f"{PLUGIN}/index.html")[0] == 200
    address = f"{PLUGIN}/api/runs/{run['id']}/report"
    status, _, body = until(lambda: board.get(address), lambda answer: answer[0] != 202)
    assert status == 200
    found: dict[str, Any] = json.loads(body)
    return found
