"""Runs the real command in a process of its own, as a user would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import stepscope as package

FIXTURES = Path(__file__).parent.parent / "fixtures"
PROFILE = FIXTURES / "kineto" / "streams.pt.trace.json.gz"
_END = "---- end of a command ----"


# Where the package under test lies, for processes that start in another folder.
SOURCES = str(Path(package.__file__).parent.parent)


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """That of the tests, with the package under test first."""
    paths = [SOURCES, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **(more or {})}


def stepscope(
    *arguments: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """What `stepscope` with these arguments prints, and how it ends."""
    command = [sys.executable, "-m", "stepscope", *map(str, arguments)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=environment(env),
        cwd=cwd,
        check=False,
    )


def succeeds(*arguments: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> str:
    """What it prints to stdout; it must not fail."""
    ended = stepscope(*arguments, env=env, cwd=cwd)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


# Commands one after the other, in one process and on one terminal: each would take a second to start. That a slow machine
# shows a progress bar is no fault.
_EACH = f"""
import json, sys
from stepscope.cli import console, main
console.SHOW_PROGRESS_AFTER_S = 3600
for words in json.loads(sys.argv[1]):
    sys.argv = ["stepscope", *words]
    try:
        main()
    except SystemExit:
        pass
    print({_END!r}, flush=True)
"""


def in_terminal(*arguments: str | Path, columns: int = 100) -> str:
    """The same with a terminal on both outputs: what a person sees."""
    (seen,) = in_terminal_each(arguments, columns=columns)
    return seen


def in_terminal_each(*commands: Sequence[str | Path], columns: int = 100) -> list[str]:
    """What a person sees of each of several commands."""
    words = json.dumps([[*map(str, each)] for each in commands])
    seen = _on_terminal([sys.executable, "-c", _EACH, words], columns).split(f"{_END}\n")
    assert len(seen) == len(commands) + 1 and not seen[-1], seen[-1]
    return seen[:-1]


def _on_terminal(command: list[str], columns: int) -> str:
    import fcntl
    import pty
    import struct
    import termios

    primary, secondary = pty.openpty()
    try:
        fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        told = ("NO_COLOR", "COLUMNS", "FORCE_COLOR")
        env = {name: value for name, value in environment().items() if name not in told}
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=secondary,
            stderr=secondary,
            env={**env, "TERM": "xterm-256color"},
        )
        os.close(secondary)
        return _everything(primary, process)
    finally:
        os.close(primary)


def _everything(primary: int, process: subprocess.Popen[bytes]) -> str:
    found = b""
    while True:
        try:
            piece = os.read(primary, 1 << 16)
        except OSError:  # the other side was closed
            break
        if not piece:
            break
        found += piece
    process.wait()
    return found.decode(errors="replace").replace("\r\n", "\n")
