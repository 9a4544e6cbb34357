"""The page about the gate: its example for CI is run as it stands, its budget is read, its test records."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec

from stepscope.gate.budget import budget
from tests.cli.run import environment
from tests.patience import measured

PAGE = (Path(__file__).parent.parent.parent / "docs" / "gate.md").read_text("utf-8")
TRAIN = """
import time
import stepscope
for number in range(18):
    time.sleep({seconds} if number > 8 else 0)
    stepscope.step()
"""
TEST = """
import time
import pytest
import stepscope

@pytest.mark.stepscope(step_time="10 s", findings=["device-sync"])
def test_kept():
    for _ in range(4):
        time.sleep(0.002)
        stepscope.step()

@pytest.mark.stepscope(step_time="1 ms")
def test_broken():
    for _ in range(9):
        time.sleep(0.05)
        stepscope.step()

@pytest.mark.stepscope(step_tiem="1 ms")
def test_wrong():
    pass

@pytest.mark.stepscope(step_time="1 ms")
def test_without_steps():
    pass

def test_unmarked():
    pass
"""


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.+?)```", PAGE, flags=re.DOTALL)
    assert found is not None
    return found[1]


def commands() -> list[str]:
    """The commands of the job, without the checkout and the installation."""
    return [line for line in re.findall(r"- run: (.+)", block("yaml")) if not line.startswith("pip ")]


def ran(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """With `stepscope` and `python` on the path, as in a job."""
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    for name, words in (("stepscope", f"{sys.executable} -m stepscope"), ("python", sys.executable)):
        script = tools / name
        script.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        script.chmod(0o755)
    env = environment(
        {
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        }
    )
    return subprocess.run(
        ["bash", "-ec", command], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


def test_the_example_for_ci_runs(tmp_path: Path) -> None:
    """Main is recorded first; the branch is so slow that no busy machine hides it, and is stopped by its budget."""

    def attempt(number: int) -> None:
        folder = tmp_path / str(number)
        folder.mkdir()
        check_the_example(folder)

    measured(attempt)


def check_the_example(tmp_path: Path) -> None:
    record, compare, gate = commands()
    train = tmp_path / "train.py"
    train.write_text(TRAIN.format(seconds=0.005))
    main = ran(record.replace("profiles/new", "profiles/main"), tmp_path)
    assert main.returncode == 0, main.stderr
    train.write_text(TRAIN.format(seconds=0.3))
    (tmp_path / "budgets.toml").write_text(
        'step_time = "30 ms"\n[baseline]\npath = "profiles/main"\nstep_time = "50 %"\n'
    )
    for command in (record, compare):
        ended = ran(command, tmp_path)
        assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "summary.md").read_text("utf-8").startswith("### ")
    judged = ran(gate, tmp_path)
    assert judged.returncode == 3, judged.stderr
    assert "FAILED: 2 of 2 limits exceeded.\n" in judged.stdout
    assert re.search(r"step_time +30\.0 ms +[\d.]+ m?s .+ exceeded ", judged.stdout)


def test_the_example_of_a_budget_is_right() -> None:
    found = budget(msgspec.toml.decode(block("toml")), "x")
    assert found.baseline is not None
    assert found.baseline.parts["compute"].amount == 0.05


def _pytest(folder: Path, test: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_job.py").write_text(test)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "stepscope.testing.plugin", "--strict-markers"]
    return subprocess.run(
        [*words, "-p", "no:cacheprovider"],
        cwd=folder,
        env=environment({"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}),
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_marker(tmp_path: Path) -> None:
    ended = _pytest(tmp_path, TEST)
    assert "3 failed, 2 passed" in ended.stdout, ended.stdout
    assert ended.returncode == 1
    assert "FAILED: 1 of 1 limit exceeded." in ended.stdout
    assert "the marker of test_wrong: unknown key step_tiem. Did you mean step_time?" in ended.stdout
    assert "UNKNOWN: the test has recorded no step. It must call stepscope.step() after each." in ended.stdout


BLIND = """
import pytest
import stepscope


@pytest.mark.stepscope(findings=["straggler"], parts={"compute": "5 %"}, step_time="10 min", peak_memory="1 TB")
def test_blind():
    for _ in range(4):
        stepscope.step()


def test_other():
    pass
"""


def test_a_marker_that_cannot_judge_says_unknown_and_ends_with_3(tmp_path: Path) -> None:
    ended = _pytest(tmp_path, BLIND)
    assert "UNKNOWN: 1 of 4 limits unknown." in ended.stdout, ended.stdout
    assert ended.returncode == 3
