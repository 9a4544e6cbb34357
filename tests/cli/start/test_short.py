"""The commonest command lines mean the same, whoever reads them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from stepscope.cli import report as command
from stepscope.cli.app import app
from stepscope.cli.reporting import ReportWish
from stepscope.cli.start import short
from tests.cli.run import PROFILE, succeeds

SHORT = (
    ("report", "a"),
    ("report", "a", "b c", ""),
    ("report", "--no-cache", "a"),
    ("report", "a", "--full", "-q"),
    ("report", "--quiet", "a", "--quiet"),
)


@pytest.mark.skipif(os.name == "nt", reason="there all are read by the library")
@pytest.mark.parametrize("words", SHORT)
def test_it_reads_as_the_library_does(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    wishes: list[ReportWish] = []
    monkeypatch.setattr(command, "run_report", wishes.append)
    app(list(words), standalone_mode=False)
    assert wishes == [short.read_short(list(words))]


@pytest.mark.parametrize(
    "words",
    [(), ("report",), ("report", "--full"), ("report", "a", "--rank"), ("report", "-h"), ("report", "a", "--", "-b"), ("report", "a", "-"), ("info", "a"), ("--version",)],
)  # fmt: skip
def test_all_else_is_left_to_the_library(words: tuple[str, ...]) -> None:
    assert short.read_short(list(words)) is None


def test_a_shell_that_completes_is_left_to_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_STEPSCOPE_COMPLETE", "complete_bash")
    assert short.read_short(["report", "a"]) is None


@pytest.mark.skipif(os.name == "nt", reason="there all are read by the library")
def test_a_kept_report_imports_little() -> None:
    succeeds("report", PROFILE)
    script = (
        "import sys; from stepscope.cli import main; sys.argv = ['stepscope', 'report', sys.argv[1]]; main()\n"
        "heavy = 'polars', 'typer', 'pydantic'\n"
        "print([name for name in heavy if name in sys.modules], file=sys.stderr)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script, str(PROFILE)], capture_output=True, text=True, check=True
    )
    assert ended.stderr == "[]\n"


def test_what_is_left_to_do_is_done_before_the_quick_end() -> None:
    script = (
        "import atexit, threading, time; from stepscope.cli.start.leave import leave\n"
        "atexit.register(print, 'registered')\n"
        "threading.Thread(target=lambda: (time.sleep(0.1), print('thread'))).start()\n"
        "leave(); print('never')"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout == "thread\nregistered\n"


def test_a_stream_that_cannot_be_written_is_left_to_python() -> None:
    script = (
        "import sys; from stepscope.cli.start.leave import leave; sys.stdout.close(); leave(); sys.exit(3)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 3
