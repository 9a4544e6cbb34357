"""`stepscope doctor`: what it prints, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.inside import stepscope
from tests.cli.run import FIXTURES, in_terminal
from tests.doctor.files import WRONG, kineto
from tests.doctor.scripts import RIGHT
from tests.doctor.scripts import WRONG as WRONG_SCRIPTS


def test_a_failure_has_evidence_and_a_fix(tmp_path: Path) -> None:
    path = WRONG["no-device-events"][0](tmp_path)
    ended = stepscope("doctor", path)
    assert ended.returncode == 3
    lines = ended.stdout.splitlines()
    assert lines[0].startswith(f"{path}: ") and " problem" in lines[0]
    assert any("error: " in line and "[no-device-events]" in line for line in lines)
    assert any(line.startswith("  → ") for line in lines)
    assert "checks passed" in lines[-1]
    assert ended.stderr == ""


def test_a_good_profile(tmp_path: Path) -> None:
    ended = stepscope("doctor", kineto()(tmp_path))
    assert ended.returncode == 0
    assert "no problems found" in ended.stdout.splitlines()[0]


def test_json(tmp_path: Path) -> None:
    ended = stepscope("doctor", WRONG["truncated"][0](tmp_path), "--format", "json")
    assert ended.returncode == 3
    found = json.loads(ended.stdout)
    assert found["schema"] == "stepscope.doctor/1"
    (result,) = [each for each in found["results"] if each["code"] == "truncated"]
    assert result.keys() == {"code", "group", "severity", "title", "cause", "evidence", "fix"}
    assert (result["group"], result["severity"]) == ("profile", "error")
    assert len(found["passed"]) > 40


def test_a_script(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(WRONG_SCRIPTS["profiler-never-stopped"][1])
    ended = stepscope("doctor", script)
    assert ended.returncode == 3
    assert "Line 2" in ended.stdout
    script.write_text(RIGHT["jax"])
    assert stepscope("doctor", script).returncode == 0


def test_a_script_is_never_run(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(f"import pathlib\npathlib.Path({str(tmp_path / 'ran')!r}).touch()\n")
    stepscope("doctor", script)
    assert not (tmp_path / "ran").exists()


def test_the_environment(tmp_path: Path) -> None:
    ended = stepscope("doctor", "--format", "json", "--logdir", tmp_path)
    found = json.loads(ended.stdout)
    assert found["subject"] == "environment"
    assert found["facts"]["python"]
    assert ended.returncode == (3 if any(each["severity"] != "info" for each in found["results"]) else 0)


def test_what_is_not_there_is_an_error(tmp_path: Path) -> None:
    for path in (tmp_path / "gone", tmp_path / "gone.py"):
        ended = stepscope("doctor", path)
        assert ended.returncode == 1
        assert "No such file or folder" in ended.stderr
        assert ended.stdout == ""
    assert stepscope("doctor", "--python", tmp_path / "gone").returncode == 1


def test_verbose_names_all_checks(tmp_path: Path) -> None:
    ended = stepscope("doctor", "-v", WRONG["nothing-found"][1](tmp_path))
    assert "there is no profile to look at: " in ended.stdout
    assert "passed: " in ended.stdout


def test_in_a_terminal(tmp_path: Path) -> None:
    shown = in_terminal("doctor", WRONG["no-device-events"][0](tmp_path), columns=80)
    assert "no-device-events" in shown
    plain = "".join(
        piece.partition("m")[2] if place else piece for place, piece in enumerate(shown.split("\x1b["))
    )
    assert all(len(line) <= 90 for line in plain.splitlines() if str(tmp_path) not in line)


def test_names_from_outside_are_made_safe(tmp_path: Path) -> None:
    script = tmp_path / "train\x1b[31m.py"
    script.write_text("import jax\n")
    assert "\x1b" not in stepscope("doctor", script).stdout


def test_the_fixtures_of_the_readers() -> None:
    for path in sorted((FIXTURES / "kineto").iterdir()):
        assert stepscope("doctor", path).returncode in (0, 3)
