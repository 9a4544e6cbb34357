"""Scripts with one mistake each get that check's failure; idiomatic scripts get none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stepscope.doctor.examine import examine
from stepscope.doctor.result import Diagnosis
from stepscope.doctor.script import CHECKS
from stepscope.doctor.script.source import parse, read_script
from stepscope.doctor.script.subject import TrainingScript
from stepscope.errors import StepscopeError
from tests.doctor import posted, scripts

WRONG = {
    code: [*scripts.WRONG.get(code, ()), *posted.WRONG.get(code, ())] for code in scripts.WRONG | posted.WRONG
}
RIGHT = scripts.RIGHT | posted.RIGHT
BY_FILES = {"shadowed-module"}  # provoked by what lies beside a script


def diagnose(source: str) -> Diagnosis:
    """What the doctor says of a script with this text."""
    return examine(TrainingScript(parse(source)), CHECKS, "train.py")


@pytest.mark.parametrize(
    ("code", "source"),
    [(code, source) for code, sources in WRONG.items() for source in sources],
    ids=lambda each: each if len(each) < 40 else "",
)
def test_a_mistake_is_noticed(code: str, source: str) -> None:
    found = diagnose(source)
    assert code in {result.code for result in found.results}
    assert not [each for each in found.not_looked_at if "could not be answered" in each.reason]


@pytest.mark.parametrize(
    ("code", "source"),
    [(code, source) for code, sources in WRONG.items() for source in sources],
    ids=lambda each: each if len(each) < 40 else "",
)
def test_a_mistake_is_told_once_and_for_what_it_is(code: str, source: str) -> None:
    """Other failures may come only where the mistake really has that consequence as well."""
    consequences = {
        "profiler-name-unknown": {"profiler-never-started"},
        "two-profilers": {"trace-thrown-away"},
        "nothing-records": set(),
        "option-missing": {"trace-thrown-away"},
    }
    failing = {result.code for result in diagnose(source).failures}
    assert failing - {code} <= consequences.get(code, set())


@pytest.mark.parametrize("name", RIGHT)
def test_idiomatic_scripts_have_no_failure(name: str) -> None:
    found = diagnose(RIGHT[name])
    assert [(result.code, result.evidence) for result in found.failures] == []
    assert [each for each in found.not_looked_at if "could not be answered" in each.reason] == []


def test_every_check_is_provoked() -> None:
    assert {check.code for check in CHECKS} == {*WRONG, *BY_FILES}, (
        "provoke it in WRONG of tests/doctor/scripts.py"
    )


def test_a_file_that_hides_a_package(tmp_path: Path) -> None:
    (tmp_path / "profile.py").write_text("")
    (tmp_path / "train.py").write_text("import cProfile\n")
    found = examine(TrainingScript(read_script(str(tmp_path / "train.py"))), CHECKS, "train.py")
    assert [result.code for result in found.failures] == ["shadowed-module"]


def test_lines_are_told() -> None:
    found = diagnose("import jax\n\njax.profiler.start_trace('logs')\ntrain().block_until_ready()\n")
    assert "Line 3" in found.failures[0].evidence


def test_a_notebook_is_a_script(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Hello"]},
        {"cell_type": "code", "source": ["%load_ext tensorboard\n", "!pip list\n", "import jax\n"]},
        {"cell_type": "code", "source": "jax.profiler.start_trace('logs')\ntrain().block_until_ready()"},
    ]
    path = tmp_path / "train.ipynb"
    path.write_text(json.dumps({"cells": cells, "nbformat": 4}))
    found = examine(TrainingScript(read_script(str(path))), CHECKS, str(path))
    assert [result.code for result in found.failures] == ["profiler-never-stopped"]


@pytest.mark.parametrize("name", ["gone.py", "folder.py"])
def test_what_cannot_be_read_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.py").mkdir()
    with pytest.raises(StepscopeError):
        read_script(str(tmp_path / name))


def test_odd_sources_do_no_harm() -> None:
    for source in ("", "\0", "(" * 500, "x = " + "-" * 2000 + "1", "𝕏 = 1\n", "\ufeffimport torch\n"):
        diagnose(source)


@pytest.mark.parametrize("name", [name for name in RIGHT if name.startswith("tensorflow 1")])
def test_a_session_with_a_full_trace_records(name: str) -> None:
    assert "nothing-records" not in {result.code for result in diagnose(RIGHT[name]).results}


def test_lines_for_ipython_keep_their_numbers() -> None:
    found = diagnose(
        "!pip list\n%matplotlib inline\nimport jax\njax.profiler.start_trace('logs')\ntrain().item()\n"
    )
    assert "Line 4" in found.failures[0].evidence


def test_a_syntax_error_is_of_the_file_as_it_is() -> None:
    found = diagnose("!pip list\nprint 'hello'\n")
    assert [result.code for result in found.failures] == ["script-syntax"]
