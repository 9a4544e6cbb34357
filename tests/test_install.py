"""Setting up: what make says on machines that lack something, and that the hot loops are what it meant to install."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stepscope import native

ROOT = Path(__file__).resolve().parent.parent
needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make in the project, without the settings of the make that may run the tests."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        ["make", *arguments], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )


def fake_python(folder: Path, script: str) -> Path:
    """A program that stands in for python3."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.mark.skipif("STEPSCOPE_EXPECT" not in os.environ, reason="only make knows what it installed")
def test_the_hot_loops_are_what_make_installed() -> None:
    found = "interpreted" if native.interpreted() else "compiled"
    assert found == os.environ["STEPSCOPE_EXPECT"], f"run as plain Python: {native.interpreted()}"


@needs_make
def test_an_old_python_is_named(tmp_path: Path) -> None:
    python = fake_python(tmp_path, "exit 1")
    venv = tmp_path / "venv"
    ended = make(f"PYTHON={python}", f"VENV={venv}", f"{venv}/.made")
    assert ended.returncode != 0
    assert f"stepscope needs Python 3.10 or newer as {python}. Try: make PYTHON=python3.12" in ended.stderr


@needs_make
def test_a_python_without_venv_is_named(tmp_path: Path) -> None:
    python = fake_python(tmp_path, 'case "$2" in *ensurepip*) exit 1 ;; esac')
    venv = tmp_path / "venv"
    ended = make(f"PYTHON={python}", f"VENV={venv}", f"{venv}/.made")
    assert ended.returncode != 0
    assert "cannot make virtual environments. On Debian and Ubuntu: apt install python3-venv" in ended.stderr


@needs_make
def test_without_a_compiler_another_environment_is_used() -> None:
    compiled, interpreted = (
        make("--dry-run", f"CC={compiler}", "lint").stdout for compiler in ("true", "false")
    )
    assert ".venv/bin/python -m ruff check" in compiled
    assert ".venv-interpreted/bin/python -m ruff check" in interpreted


@needs_make
def test_help_lists_what_can_be_made() -> None:
    listed = [line.split()[1] for line in make("help").stdout.splitlines()]
    assert {"demo", "test", "lint", "bench", "soak", "clean"} <= set(listed)


MODULE = """
#include <Python.h>
static struct PyModuleDef about = {PyModuleDef_HEAD_INIT, "NAME", 0, -1, 0};
PyMODINIT_FUNC PyInit_NAME(void) { return PyModule_Create(&about); }
"""


def built(names: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The extensions that are there when setup.py has built these sources, all of them optional, in this folder."""
    setuptools = pytest.importorskip("setuptools")
    with monkeypatch.context() as patch:
        patch.chdir(ROOT)
        patch.setattr(setuptools, "setup", lambda **_: None)
        patch.setitem(sys.modules, "Cython.Build", None)  # nothing of our own is to be built here
        fresh_build: Any = runpy.run_path(str(ROOT / "setup.py"))["FreshBuild"]
    for name, source in names.items():
        Path(f"{name}.c").write_text(source.replace("NAME", name))
    extensions = [setuptools.Extension(name, [f"{name}.c"], optional=True) for name in names]
    command = fresh_build(setuptools.Distribution({"name": "tiny", "ext_modules": extensions}))
    command.inplace = True
    command.ensure_finalized()
    command.run()
    return sorted({path.name.split(".")[0] for path in Path().rglob("*.so")})


@pytest.mark.skipif(os.name == "nt" or shutil.which("cc") is None, reason="there is no C compiler")
def test_extensions_are_built_all_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CC", raising=False)  # `CC=false make test` runs the other tests without a compiler
    assert built({"one": MODULE, "two": MODULE}, monkeypatch) == ["one", "two"]
    assert built({"one": MODULE, "two": "this is not C"}, monkeypatch) == []
