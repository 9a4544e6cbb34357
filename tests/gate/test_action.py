"""The steps of action.yml as a script: pass, fail, unknown, first run without a baseline, and errors."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest

from stepscope.gate import action
from stepscope.gate.check import Check, Gate
from stepscope.gate.comment import marker, write_comment
from stepscope.registers.policy.diffs import COMMENT_BYTES
from tests.builders.files import write_ops
from tests.cli.run import FIXTURES, environment

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[2]
FAST, SLOW = (FIXTURES / "diagnosis" / f"torch_item.{name}.pt.trace.json.gz" for name in ("mended", "slow"))


@pytest.fixture(scope="module")
def definition() -> Any:
    return yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """What RUNNER_TEMP is on a runner."""
    (tmp_path / "stepscope" / "baseline").mkdir(parents=True)
    return tmp_path


def step_named(definition: Any, name: str) -> Any:
    (found,) = (step for step in definition["runs"]["steps"] if step["name"] == name)
    return found


def run_step(
    definition: Any, name: str, place: Path, env: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """The shell of one step, as a runner starts it."""
    shims = place / "bin"
    shims.mkdir(exist_ok=True)
    if not (shims / "python").exists():
        (shims / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        (shims / "python").chmod(0o755)
    outputs = {"GITHUB_OUTPUT": str(place / "output"), "GITHUB_STEP_SUMMARY": str(place / "summary")}
    script = place / "step.sh"
    script.write_text(step_named(definition, name)["run"], "utf-8")
    known = environment({**outputs, "RUNNER_TEMP": str(place), "GITHUB_REPOSITORY": "me/mine", **env})
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
        env={**known, "PATH": f"{shims}{os.pathsep}{known['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )


def compare(definition: Any, place: Path, profile: Path, **inputs: str) -> dict[str, str]:
    """The outputs of the step that compares, with the defaults of the inputs."""
    defaults = {
        name.upper().replace("-", "_"): each.get("default", "") for name, each in definition["inputs"].items()
    }
    wanted = {"PROFILE": str(profile), "UPDATE": "false", **inputs}
    names = step_named(definition, "Compare")["env"]
    env = {name: wanted.get(name, defaults.get(name, "")) for name in names}
    ended = run_step(definition, "Compare", place, env)
    assert ended.returncode == 0, ended.stderr
    return dict(line.split("=", 1) for line in (place / "output").read_text("utf-8").splitlines())


def read_comment(place: Path) -> str:
    return (place / "stepscope" / "comment.md").read_text("utf-8")


def test_fail(definition: Any, place: Path) -> None:
    shutil.copy(FAST, place / "stepscope" / "baseline")
    junit = place / "junit.xml"
    found = compare(definition, place, SLOW, JUNIT=str(junit))
    assert found == {"outcome": "fail", "saved": "false", "code": "3"}
    comment = read_comment(place)
    assert comment.startswith("<!-- stepscope:stepscope-baseline -->\n### ❌ stepscope: failed\n")
    changed, _, _ = comment.partition("**FAILED")
    assert "**Changed by more than noise:**\n- `the step` 9.52 ms → 14.7 ms" in changed
    assert (place / "summary").read_text("utf-8") == comment
    assert next(Xml.parse(junit).iter("testsuite")).get("failures") == "1"
    assert run_step(definition, "Verdict", place, {"CODE": found["code"]}).returncode == 3


def test_pass_and_what_is_within_noise(definition: Any, place: Path) -> None:
    shutil.copy(SLOW, place / "stepscope" / "baseline")
    found = compare(definition, place, SLOW)
    assert found == {"outcome": "pass", "saved": "false", "code": "0"}
    assert "### ✅ stepscope: passed" in read_comment(place)
    assert "**Changed by more than noise:** nothing." in read_comment(place)


def test_a_passing_run_of_the_baseline_branch_is_the_new_baseline(definition: Any, place: Path) -> None:
    shutil.copy(SLOW, place / "stepscope" / "baseline")
    assert compare(definition, place, FAST, UPDATE="true")["saved"] == "true"
    assert [path.name for path in (place / "stepscope" / "next").iterdir()] == [FAST.name]


def test_first_run_saves_its_profile(definition: Any, place: Path) -> None:
    found = compare(definition, place, SLOW)
    assert found == {"outcome": "first", "saved": "true", "code": "0"}
    assert action.SAVED in read_comment(place)
    shutil.rmtree(place / "stepscope" / "baseline")
    (place / "stepscope" / "next").rename(place / "stepscope" / "baseline")
    assert compare(definition, place, SLOW)["outcome"] == "pass"


def test_first_run_judges_absolute_limits(definition: Any, place: Path) -> None:
    budget = place / "budgets.toml"
    budget.write_text('step_time = "10 ms"\n[baseline]\nstep_time = "5 %"\n')
    found = compare(definition, place, SLOW, MODE="check", BUDGET=str(budget))
    assert found == {"outcome": "fail", "saved": "true", "code": "3"}


def test_unknown(definition: Any, place: Path) -> None:
    """Memory that neither run recorded, and a profile without steps as the first."""
    shutil.copy(SLOW, place / "stepscope" / "baseline")
    found = compare(definition, place, SLOW, FAIL_ON="5%, peak_memory=3%")
    assert found == {"outcome": "unknown", "saved": "false", "code": "3"}
    assert "### ❔ stepscope: unknown" in read_comment(place)


def test_a_first_run_without_steps_is_not_saved(tmp_path: Path) -> None:
    profile = write_ops(tmp_path / "ops.pt.trace.json", "a", "b")
    judged = action.judge(action.Request(str(profile), save=str(tmp_path / "next")))
    assert (judged.outcome, judged.saved) == ("unknown", False)
    assert action.NO_STEPS in judged.note


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (action.Request("no/such"), "No such file or folder"),
        (action.Request(str(SLOW), mode="check", budget="no/such.toml"), "No such file or folder"),
        (action.Request(str(SLOW), fail_on=("5 parsecs",)), "invalid amount"),
        (action.Request(str(SLOW), baseline=str(Path(__file__).parent)), "profile"),
    ],
)
def test_errors_end_in_one_sentence(request_: action.Request, words: str) -> None:
    judged = action.judge(request_)
    assert (judged.outcome, judged.saved) == ("error", False)
    assert words in judged.note


def test_the_baseline_of_a_folder_and_of_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    shutil.copy(SLOW, tmp_path / "run")
    for number, given in enumerate((tmp_path / "run", tmp_path / "run" / "*.json.gz")):
        save = tmp_path / f"next{number}"
        assert action.judge(action.Request(str(given), save=str(save))).saved
        assert [path.name for path in save.iterdir()] == [SLOW.name]


def test_a_comment_is_updated_not_repeated(definition: Any, place: Path) -> None:
    """With a gh that answers as GitHub does: the first run posts, the second changes the same comment."""
    (place / "stepscope" / "comment.md").write_text(f"{marker('mine')}\ntext\n")
    (place / "bin").mkdir()
    gh = place / "bin" / "gh"
    gh.write_text(f'#!/bin/sh\necho "$@" >> {place}/calls\ncase "$*" in *paginate*) cat {place}/id;; esac\n')
    gh.chmod(0o755)
    for number, known in enumerate(("", "42\n43\n")):
        (place / "id").write_text(known)
        ended = run_step(definition, "Comment on the pull request", place, {"NUMBER": "7", "GH_TOKEN": "x"})
        assert ended.returncode == 0, ended.stderr
        last = (place / "calls").read_text().splitlines()[-1]
        wanted = ("POST repos/me/mine/issues/7/comments", "PATCH repos/me/mine/issues/comments/42")[number]
        assert wanted in last


def test_the_baseline_comes_from_the_branch(definition: Any, place: Path) -> None:
    """With a gh that has one artifact, of the pull request's own branch only."""
    (place / "bin").mkdir()
    shutil.make_archive(str(place / "artifact"), "zip", SLOW.parent, SLOW.name)
    gh = place / "bin" / "gh"
    gh.write_text(
        f'#!/bin/sh\ncase "$*" in *zip*) cat {place}/artifact.zip;; *) [ "$BRANCH" = feature ] && echo 5; true;; esac\n'
    )
    gh.chmod(0o755)
    env = {"ARTIFACT": "stepscope-baseline", "BASELINE_BRANCH": "main", "OWN_BRANCH": "feature"}
    ended = run_step(definition, "Download the baseline", place, env)
    assert ended.returncode == 0, ended.stderr
    assert (place / "stepscope" / "baseline" / SLOW.name).exists()


def test_inputs_reach_a_shell_through_its_environment_only(definition: Any) -> None:
    """An expression inside a script would let a branch's name run commands."""
    scripts = [step["run"] for step in definition["runs"]["steps"] if "run" in step]
    assert len(scripts) == 5
    assert [script for script in scripts if "${{" in script] == []


def test_every_input_is_documented(definition: Any) -> None:
    page = (ROOT / "docs" / "action.md").read_text("utf-8")
    names = [*definition["inputs"], *definition["outputs"]]
    assert [name for name in names if f"| `{name}` |" not in page] == []


def test_a_comment_fits() -> None:
    check = Check(name="x" * 5000, limit=1, value=2, unit="ns", verdict="over", message="m" * 9000)
    gate = Gate(path="p", passed=False, checks=[check] * 20)
    assert len(write_comment("k", "fail", gate=gate).encode()) < COMMENT_BYTES
    assert re.fullmatch(r"<!-- stepscope:ab -->", marker("a-->b".replace("-->", "!")))
