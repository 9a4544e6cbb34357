"""Runs the command in this process: an exit code and both outputs, without a second for every start."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from stepscope.cli import main


@dataclass(frozen=True)
class Ended:
    """Named as what `subprocess.run` returns."""

    returncode: int
    stdout: str
    stderr: str


def stepscope(*arguments: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Ended:
    """What `stepscope` with these arguments prints, and how it ends. What no verb catches is raised here."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["stepscope", *map(str, arguments)])
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        patch.setattr(sys, "excepthook", sys.excepthook)  # typer puts its own in its place
        for name, value in (env or {}).items():
            patch.setenv(name, value)
        if cwd is not None:
            patch.chdir(cwd)
        code = _exit_code()
    return Ended(code, _text(out), _text(err))


def succeeds(*arguments: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> str:
    """What it prints to stdout; it must not fail."""
    ended = stepscope(*arguments, env=env, cwd=cwd)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def _exit_code() -> int:
    try:
        main()
    except SystemExit as ended:
        assert isinstance(ended.code, int | None)
        return ended.code or 0
    return 0


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode("utf-8")
