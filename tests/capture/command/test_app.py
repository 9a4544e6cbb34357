"""The command line of the recorder alone takes what that of the whole takes."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest
import typer.main

from stepscope import __version__
from stepscope.capture.command.app import capture_parser, run_command, run_parser
from stepscope.cli.app import app

PARSERS = {"run": run_parser, "capture": capture_parser}


def options_of_recorder(parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Every option by its last name, with its default."""
    found = [action for action in parser._actions if action.option_strings and action.dest != "help"]
    return {action.option_strings[-1]: action.default for action in found}


def options_of_whole(name: str) -> dict[str, Any]:
    command: Any = typer.main.get_command(app)
    found = [each for each in command.commands[name].params if each.param_type_name == "option"]
    return {each.opts[-1]: each.default for each in found if each.name != "help"}


@pytest.mark.parametrize("name", PARSERS)
def test_the_same_options_with_the_same_defaults(name: str) -> None:
    whole = {option: _plain(value) for option, value in options_of_whole(name).items()}
    recorder = options_of_recorder(PARSERS[name]())
    assert {option: _plain(value) for option, value in recorder.items()} == whole


def _plain(value: Any) -> Any:
    return str(getattr(value, "value", value)) if not isinstance(value, bool | None) else value


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["--version"]) == 0
    assert capsys.readouterr().out == f"stepscope {__version__} (stepscope-capture)\n"


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert (run_command([]), run_command(["-h"])) == (2, 0)
    assert "pip install stepscope" in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["report", "serve", "no-such-verb"])
def test_other_verbs(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command([verb, "x"]) == 2
    assert f"`stepscope {verb}` is not part of stepscope-capture" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["run"], "no command given"),
        (["run", "--steps", "5:3", "--", "x"], "ends before it starts"),
        (["run", "--keep", "none", "--", "x"], "is not a number of windows"),
        (["run", "--repeat", "-1", "--", "x"], "is less than 0"),
        (["capture", "--steps", "0"], "is less than 1"),
        (["capture", "--timeout", "nan"], "is less than 0.1"),
    ],
)
def test_wrong_usage(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run_command(words)
    assert ended.value.code == 2
    assert says in capsys.readouterr().err


def test_a_command_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["run", "-o", str(tmp_path), "--", "no-such-command"]) == 127
    assert "Command not found: no-such-command" in capsys.readouterr().err
