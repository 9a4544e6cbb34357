"""The command as a whole: exit codes, help, errors in words, pipes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stepscope import __version__
from stepscope.cli.console import Color, session
from stepscope.errors import StepscopeError
from tests.builders.hostile import write_hostile
from tests.cli import inside
from tests.cli.run import PROFILE, in_terminal, in_terminal_each, stepscope, succeeds
from tests.patience import PATIENCE_S

VERBS = ("info", "query", "export", "report", "diff", "check", "doctor", "run", "capture", "serve", "demo")


def test_version() -> None:
    assert succeeds("--version") == f"stepscope {__version__}\n"


def test_help_names_every_verb() -> None:
    text = succeeds("--help")
    assert all(verb in text for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb: str) -> None:
    assert f"Usage: stepscope {verb}" in inside.succeeds(verb, "-h")


def test_help_and_version_import_little() -> None:
    script = (
        "import sys; from stepscope.cli import app; heavy = 'polars', 'rich', 'stepscope.capture.profiler'\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"


def test_what_is_in_the_cache_needs_no_reader() -> None:
    succeeds("query", PROFILE, "SELECT 1 AS one FROM events LIMIT 1")
    script = (
        "import sys, stepscope; stepscope.load(sys.argv[1]).events\n"
        "print([name for name in sys.modules if name.startswith('stepscope.formats.xplane.draft')])"
    )
    command = [sys.executable, "-c", script, str(PROFILE)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize(
    "arguments",
    [(), ("nonsense",), ("info",), ("info", "x", "--format", "yaml"), ("query", "x"), ("export", "x"), ("info", "x", "--rank", "-1")],
)  # fmt: skip
def test_wrong_usage_ends_with_2(arguments: tuple[str, ...]) -> None:
    ended = inside.stepscope(*arguments)
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr


def test_wrong_usage_of_a_process() -> None:
    assert stepscope("info").returncode == 2


@pytest.mark.parametrize("verb", [("info",), ("query", "SELECT 1"), ("export", "--to", "chrome")])
def test_our_errors_end_with_1_and_say_what_to_do(verb: tuple[str, ...], tmp_path: Path) -> None:
    ended = inside.stepscope(verb[0], tmp_path / "absent", *verb[1:])
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr.startswith("error: No such file or folder")
    assert "Traceback" not in ended.stderr


def test_an_empty_folder_says_what_was_looked_at(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    ended = inside.stepscope("info", tmp_path)
    assert ended.returncode == 1
    assert "1 file in 1 folder examined" in ended.stderr
    assert "notes.txt" in ended.stderr


def test_verbose_adds_the_traceback(tmp_path: Path) -> None:
    assert "Traceback" in inside.stepscope("info", tmp_path / "absent", "-v").stderr


def test_a_fault_of_ours_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, session(quiet=False, verbose=False, color=Color.never):
        raise ZeroDivisionError("by\x1b[31m zero\nand more")
    assert ended.value.code == 1
    told = capsys.readouterr().err
    assert told.startswith("error: ZeroDivisionError: by\\x1b[31m zero\n")
    assert "run again with -v for the traceback" in told


def test_too_little_memory_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit), session(quiet=False, verbose=False, color=Color.never):
        raise MemoryError
    assert "Not enough memory" in capsys.readouterr().err


def test_an_interrupt_ends_with_130() -> None:
    with pytest.raises(SystemExit) as ended, session(quiet=True, verbose=False, color=Color.never):
        raise KeyboardInterrupt
    assert ended.value.code == 130


@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
def test_a_real_interrupt(tmp_path: Path) -> None:
    fifo = tmp_path / "slow.json"
    script = (
        "import time\nfrom stepscope.cli import main\nimport stepscope.cli.info as info\n"
        f"def slow(*_):\n    print('started', flush=True)\n    time.sleep({PATIENCE_S})\n"
        "info.opened = slow\nmain()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, "info", str(fifo)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "Traceback" not in told


def test_errors_of_other_kinds_pass_through() -> None:
    with pytest.raises(SystemExit), session(quiet=True, verbose=False, color=Color.never):
        raise SystemExit(5)


def test_an_error_knows_its_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    error = StepscopeError("what", fix="do this")
    error.exit_code = 7
    with pytest.raises(SystemExit) as ended, session(quiet=False, verbose=False, color=Color.never):
        raise error
    assert ended.value.code == 7
    assert capsys.readouterr().err == "error: what\ndo this\n"


@pytest.mark.skipif(os.name == "nt", reason="pipes of Unix")
def test_a_closed_pipe_is_quiet(tmp_path: Path) -> None:
    sql = "SELECT a.name, b.name, c.name FROM events a CROSS JOIN events b CROSS JOIN (SELECT name FROM events LIMIT 10) c"
    command = f"{sys.executable} -m stepscope query '{PROFILE}' \"{sql}\" --format csv | head -1"
    ended = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, check=False
    )
    assert ended.stderr == ""
    assert ended.returncode == 0


@pytest.mark.skipif(os.name == "nt", reason="a terminal of Unix")
def test_a_terminal_gets_no_orders_from_a_profile(tmp_path: Path) -> None:
    path = write_hostile(tmp_path)
    asked = [
        ("info", path),
        ("info", path, "-v"),
        ("info", path, "--format", "json"),
        ("query", path, "SELECT * FROM events"),
        ("query", path, "SELECT * FROM events", "--format", "csv"),
        ("query", path, "SELECT * FROM events", "--format", "json"),
        ("query", path, "SELECT * FROM nowhere\x1b[31m"),
        ("query", path, "SELECT thread, process FROM tracks"),
    ]
    for arguments, seen in zip(asked, in_terminal_each(*asked), strict=True):
        assert len(seen) > 20, arguments
        assert "\x1b[2J" not in seen, arguments
        assert "\x1b[31mred" not in seen, arguments
        assert not any(sign in seen for sign in "\x07\x9b\u202e"), arguments


@pytest.mark.skipif(os.name == "nt", reason="a terminal of Unix")
def test_names_are_shown_and_not_understood(tmp_path: Path) -> None:
    seen = in_terminal("query", write_hostile(tmp_path), "SELECT name FROM events", columns=200)
    for shown in (
        "\\x1b[2J\\x1b[31mred",
        "[bold red]markup[/] :smile:",
        "bell\\x07",
        "\\u202eright",
        "two\\nlines\\ttab",
    ):
        assert shown in seen


@pytest.mark.parametrize(
    ("arguments", "env", "expected"),
    [
        ((), {}, False),
        (("--color", "always"), {}, True),
        (("--color", "always"), {"NO_COLOR": "1"}, True),
        (("--color", "never"), {"FORCE_COLOR": "1"}, False),
        ((), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colours(arguments: tuple[str, ...], env: dict[str, str], expected: bool) -> None:
    plain = {"FORCE_COLOR": "", "NO_COLOR": "", "TERM": "xterm-256color"}
    text = inside.succeeds("info", PROFILE, *arguments, env=plain | env)
    assert ("\x1b[3" in text) is expected


@pytest.mark.skipif(os.name == "nt", reason="a terminal of Unix")
def test_a_terminal_has_colours_unless_told() -> None:
    coloured, plain = in_terminal_each(("info", PROFILE), ("info", PROFILE, "--color", "never"))
    assert "\x1b[" in coloured
    assert "\x1b[" not in plain


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full of Linux")
@pytest.mark.parametrize("verb", [("info",), ("query", "SELECT * FROM events")])
def test_a_full_disk_is_told(verb: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "stepscope", verb[0], str(PROFILE), *verb[1:]]
    with open("/dev/full", "w") as full:  # noqa: PTH123
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 1
    assert "No space left on device" in ended.stderr
    assert "bug" not in ended.stderr


@pytest.mark.skipif(os.name == "nt", reason="a shell of Unix")
@pytest.mark.parametrize("redirection", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams_are_no_fault(redirection: str) -> None:
    command = f"'{sys.executable}' -m stepscope info '{PROFILE}' {redirection}"
    assert subprocess.run(["bash", "-c", command], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(os.name == "nt", reason="a shell of Unix")
def test_nobody_reads_on() -> None:
    command = f"set -o pipefail; '{sys.executable}' -m stepscope info -q '{PROFILE}' | true"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    told = [line for line in ended.stderr.splitlines() if not line.startswith("slow path:")]
    assert (ended.returncode, told) == (0, [])


def test_a_stream_of_few_letters_gets_escapes() -> None:
    assert "\\u2013" in succeeds("info", PROFILE, env={"PYTHONIOENCODING": "ascii"})
