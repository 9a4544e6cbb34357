"""Builds both distributions from a copy of the sources, interpreted, with the setuptools of this environment: seconds, no index."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from tests.versions.environments import copied_source

RECORDER, WHOLE = "stepscope_capture", "stepscope"
# Of both, below the root of the sources.
PLACES = {RECORDER: Path("packaging", "capture"), WHOLE: Path()}
_HOOK = "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv.pop(1))(sys.argv.pop(1))"


def build(hook: str, project: Path, target: Path) -> Path:
    """What `build_wheel` or `build_sdist` of the project makes in this folder."""
    target.mkdir(parents=True, exist_ok=True)
    before = set(target.iterdir())
    subprocess.run(
        [sys.executable, "-c", _HOOK, hook, str(target)],
        cwd=project,
        env={**os.environ, "CC": "false", "SETUPTOOLS_USE_DISTUTILS": "local"},
        capture_output=True,
        check=True,
    )
    (made,) = set(target.iterdir()) - before
    return made


def copy_of_sources(folder: Path) -> Path:
    """The project without anything that was built in it."""
    return copied_source(folder)


def unpacked(sdist: Path, folder: Path) -> Path:
    """The root of what is in an sdist."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(
            folder
        )
    return folder / sdist.name.removesuffix(".tar.gz")


def files_of(wheel: Path) -> set[str]:
    """The files that its RECORD lists, without its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        (record,) = (name for name in archive.namelist() if name.endswith(".dist-info/RECORD"))
        names = {line.split(",")[0] for line in archive.read(record).decode().splitlines()}
    return {name for name in names if ".dist-info/" not in name}


def metadata_of(wheel: Path, name: str) -> str:
    """A file of its metadata; empty without it."""
    with zipfile.ZipFile(wheel) as archive:
        found = [each for each in archive.namelist() if each.endswith(f".dist-info/{name}")]
        return archive.read(found[0]).decode() if found else ""
