"""The Pythons of this machine: on PATH, and where pyenv and uv keep theirs. None is downloaded."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

# Prints the version, and fails where no virtual environment can be made.
_PROBE = "import ensurepip, venv, platform; print(platform.python_version())"
_PATIENCE_S = 60


def find_python(version: str) -> tuple[Path, str] | None:
    """An interpreter of this version (`3.12`) that can make environments, and its whole version; None if there is none."""
    for candidate in _candidates(version):
        whole = whole_version(candidate)
        if whole is not None and whole.startswith(f"{version}."):
            return candidate, whole
    return None


def whole_version(python: Path) -> str | None:
    """Of an interpreter that works: a shim of pyenv may stand for a version that is not switched on."""
    try:
        ended = subprocess.run(
            [python, "-c", _PROBE], capture_output=True, text=True, timeout=_PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ended.stdout.strip() if ended.returncode == 0 else None


def _candidates(version: str) -> Iterator[Path]:
    for entry in os.get_exec_path():
        for name in (f"python{version}", "python3"):
            if (Path(entry) / name).is_file():
                yield Path(entry) / name
    for folder, pattern in _stores(version):
        yield from sorted(folder.glob(pattern), reverse=True)


def _stores(version: str) -> Iterator[tuple[Path, str]]:
    home = Path.home()
    yield Path(os.environ.get("PYENV_ROOT") or home / ".pyenv"), f"versions/{version}.*/bin/python{version}"
    shared = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    yield shared / "uv" / "python", f"cpython-{version}.*/bin/python{version}"
