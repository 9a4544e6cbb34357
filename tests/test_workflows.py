"""The workflows of GitHub, which do not run here: what they call exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
# Made by others in the same release; `make release-check` does without.
AWAITED = {"docs"}


@pytest.fixture(params=WORKFLOWS, ids=lambda path: path.stem)
def workflow(request: pytest.FixtureRequest) -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")
    found: dict[str, Any] = yaml.safe_load(request.param.read_text("utf-8"))
    return found


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    """Of all jobs; one that calls another workflow has none."""
    return [step for job in workflow["jobs"].values() for step in job.get("steps", ())]


def test_all_are_there() -> None:
    assert {path.stem for path in WORKFLOWS} >= {"lint", "tests", "wheels", "docs", "release"}


def test_every_job_has_a_machine_and_steps(workflow: dict[str, Any]) -> None:
    for job in workflow["jobs"].values():
        assert ("runs-on" in job and job["steps"]) or (ROOT / job["uses"]).is_file()
    assert all(("run" in step) != ("uses" in step) for step in steps(workflow))


def test_every_job_that_is_needed_is_there(workflow: dict[str, Any]) -> None:
    for job in workflow["jobs"].values():
        needed = job.get("needs", [])
        assert {needed} if isinstance(needed, str) else set(needed) <= set(workflow["jobs"])


def test_actions_have_a_version(workflow: dict[str, Any]) -> None:
    used = [step["uses"] for step in steps(workflow) if "uses" in step]
    assert [name for name in used if not re.search(r"@(v\d+(\.\d+)?|release/v\d+)$", name)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_targets_of_make_exist(path: Path) -> None:
    called = set(re.findall(r"\bmake ([a-z-]+)", path.read_text("utf-8")))
    assert called - TARGETS - AWAITED == set()


def test_wheels_are_built_for_every_python() -> None:
    document = msgspec.toml.decode((ROOT / "pyproject.toml").read_bytes())
    named = re.findall(r"Python :: (3)\.(\d+)\b", " ".join(document["project"]["classifiers"]))
    assert document["tool"]["cibuildwheel"]["build"].split() == [
        f"cp{major}{minor}-*" for major, minor in named
    ]
