"""Completion in bash, zsh and fish: the scripts, and what they are answered."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.inside import stepscope
from tests.cli.run import PROFILE, environment

CASES = [
    ("stepscope rep", "report"),
    ("stepscope report x --section crit", "critical_path"),
    ("stepscope report x --format h", "html"),
    ("stepscope diff a b --fail-on peak", "peak_memory="),
    ("stepscope export x --to par", "parquet"),
    ("stepscope check x --jun", "--junit"),
]


def ask(shell: str, line: str) -> list[str]:
    """What the shell would offer for this line."""
    env = {
        "bash": {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)},
        "zsh": {"_TYPER_COMPLETE_ARGS": line},
        "fish": {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    ended = stepscope(env={"_STEPSCOPE_COMPLETE": f"complete_{shell}", **env})
    return ended.stdout.split()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(("line", "wanted"), CASES)
def test_words_are_completed(shell: str, line: str, wanted: str) -> None:
    found = ask(shell, line)
    if shell == "zsh":
        assert any(f'"{wanted}' in word for word in found)
    else:
        assert found[0] == wanted


def test_runs_of_a_folder(tmp_path: Path) -> None:
    for name in ("monday", "tuesday"):
        (tmp_path / name).mkdir()
        shutil.copy(PROFILE, tmp_path / name)
    assert sorted(ask("bash", f"stepscope info {tmp_path} --run ")) == [
        f"{name}/{PROFILE.name}" for name in ("monday", "tuesday")
    ]
    assert ask("bash", f"stepscope info {tmp_path} --run tu") == [f"tuesday/{PROFILE.name}"]
    assert ask("bash", "stepscope info /no/such --run ") == []


@pytest.mark.parametrize(
    ("shell", "words"),
    [
        ("bash", "complete -o default"),
        ("zsh", "#compdef stepscope"),
        ("fish", "complete --command stepscope"),
    ],
)
def test_the_script_of_each_shell(shell: str, words: str) -> None:
    ended = stepscope(env={"_STEPSCOPE_COMPLETE": f"source_{shell}"})
    assert words in ended.stdout


def test_a_real_bash_completes(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash")
    program = tmp_path / "stepscope"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m stepscope "$@"\n')
    program.chmod(0o755)
    script = (
        'eval "$(_STEPSCOPE_COMPLETE=source_bash stepscope)"\n'
        "COMP_WORDS=(stepscope demo --no-s); COMP_CWORD=2; _stepscope_completion stepscope; echo ${COMPREPLY[@]}"
    )
    env = environment({"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"})
    ended = subprocess.run([bash, "-c", script], env=env, capture_output=True, text=True, check=False)
    assert ended.stdout.strip() == "--no-serve", ended.stderr
