"""`make test` says at its end what passed only at the second try, and what was skipped, and why."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.outcomes import CRASHED, Summary, read_outcomes

ROOT = Path(__file__).parents[1]
TESTS = """
import pytest
from pathlib import Path

@pytest.mark.parametrize("number", range(3))
def test_good(number): pass

def test_unsteady():
    tried = Path(__file__).with_suffix(".tried")
    if not tried.exists():
        tried.touch()
        raise AssertionError
def test_bad(): raise AssertionError

@pytest.mark.skip(reason="no GPU here")
def test_skipped(): pass
"""
MODULE = """
import pytest
pytest.importorskip("no_such_package")
"""


def run(folder: Path, *options: str) -> int:
    """A run as the Makefile starts it, with two workers where they can be lost on the way: its exit code."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        str(folder),
        f"--rootdir={folder}",
        "-p",
        "tests.outcomes",
        "-p",
        "xdist",
        "-n",
        "2",
    ]
    environment = os.environ | {
        "STEPSCOPE_OUTCOMES": str(folder / "outcomes" / "part.jsonl"),
        "PYTHONPATH": str(ROOT),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # some take a second to import, in each worker
    }
    environment.pop("PYTEST_XDIST_WORKER", None)
    ended = subprocess.run(
        [*command, *options], cwd=folder, env=environment, check=False, capture_output=True
    )
    return ended.returncode


def test_a_process_that_dies_is_not_tried_again(tmp_path: Path) -> None:
    """Nobody hears of the tests that it would have run; exit code 1 would mean that all failures are known."""
    (tmp_path / "test_one.py").write_text("import os\ndef test_dies(): os.abort()\ndef test_lost(): pass\n")
    assert run(tmp_path, "--dist", "loadfile", "--max-worker-restart", "0") == CRASHED
    (tmp_path / "test_one.py").write_text("def test_bad(): raise AssertionError\n")
    assert run(tmp_path) == 1


def test_two_runs_are_added_up(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "test_module.py").write_text(MODULE)
    for options in [(), ("--last-failed", "--last-failed-no-failures", "none")]:
        run(tmp_path, *options)
    found = read_outcomes(tmp_path / "outcomes")
    assert found.unsteady == {"test_some.py::test_unsteady"}
    assert found.failed == {"test_some.py::test_bad"}
    assert found.skipped["no GPU here"] == {"test_some.py::test_skipped"}
    (module,) = (tests for reason, tests in found.skipped.items() if "no_such_package" in reason)
    assert module == {"test_module.py"}
    assert found.passed == 4


def test_a_new_first_run_forgets_the_last(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    run(tmp_path)
    run(tmp_path)
    assert read_outcomes(tmp_path / "outcomes").failed == {"test_some.py::test_bad"}


def test_reasons_are_counted_once_a_test_and_the_most_frequent_comes_first() -> None:
    found = Summary()
    found.add(
        {"outcome": "skipped", "reason": reason, "id": f"tests/{folder}/test_x.py::test_{number}"}
        for reason, folder, count in [
            ("no browser", "web", 1),
            ("no corpus", "corpus", 3),
            ("no corpus", "corpus", 2),
        ]
        for number in range(count)
    )
    assert list(found.lines()) == [
        "0 passed, 0 failed, 0 unsteady, 4 skipped",
        "SKIPPED",
        "      3  no corpus (tests/corpus)",
        "      1  no browser (tests/web)",
    ]
