"""Which Pythons are found: those that run, on PATH and in the folders of pyenv and uv."""

from __future__ import annotations

import os
import platform
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.versions.pythons import find_python, whole_version

pytestmark = pytest.mark.skipif(os.name == "nt", reason="stands in for Pythons with shell scripts")


def stand_in(path: Path, version: str, code: int = 0) -> Path:
    """A program that says it is this Python, or fails as a shim of pyenv does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {version}\nexit {code}\n")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("PYENV_ROOT", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)


def test_none() -> None:
    assert find_python("3.12") is None


def test_on_path(tmp_path: Path) -> None:
    found = stand_in(tmp_path / "bin" / "python3.12", "3.12.4")
    assert find_python("3.12") == (found, "3.12.4")
    assert find_python("3.1") is None


def test_a_python3_of_the_version(tmp_path: Path) -> None:
    found = stand_in(tmp_path / "bin" / "python3", "3.13.0")
    assert find_python("3.13") == (found, "3.13.0")
    assert find_python("3.12") is None


@pytest.mark.parametrize(
    "place",
    [".pyenv/versions/3.12.1/bin/python3.12", ".local/share/uv/python/cpython-3.12.1-linux/bin/python3.12"],
)
def test_in_a_store_behind_a_shim_that_fails(tmp_path: Path, place: str) -> None:
    stand_in(tmp_path / "bin" / "python3.12", "pyenv: not found", code=127)
    found = stand_in(tmp_path / place, "3.12.1")
    assert find_python("3.12") == (found, "3.12.1")


def test_this_one(tmp_path: Path) -> None:
    """Debian's own has no ensurepip unless python3-venv is installed."""
    expected = platform.python_version() if find_spec("ensurepip") else None
    assert whole_version(Path(sys.executable)) == expected
    assert whole_version(tmp_path / "absent") is None
