"""Runs the command in this process: an exit code and both outputs, without a second for every start."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from stepscope.cli.app import app


@dataclass(frozen=True)
class Ended:
    """Named as what `subprocess.run` returns."""

    returncode: int
    stdout: str
    stderr: str


def stepscope(*arguments: str | Path) -> Ended:
    """What `stepscope` with these arguments prints, and how it ends."""
    ended = CliRunner().invoke(app, [*map(str, arguments)], prog_name="stepscope")
    return Ended(ended.exit_code, ended.stdout, ended.stderr)


def succeeds(*arguments: str | Path) -> str:
    """What it prints to stdout; it must not fail."""
    ended = stepscope(*arguments)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
