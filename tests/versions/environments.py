"""Environments with stepscope as users install it: one wheel without extensions for all, compiled once for each Python."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from tests.versions.requirements import ROOT, Project

NATIVE = Path("src/stepscope/native")
# Compiled hot loops by their place below native/.
Extensions = dict[str, Path]
WORK = ".venv-versions"  # ignored by git, removed by make clean
_LEFT_OUT = shutil.ignore_patterns("*.so", "*.pyd", "*.c", "__pycache__", "*.egg-info", "build")
_SUFFIX = "import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'))"
_PLACE = "import sysconfig; print(sysconfig.get_path('purelib'))"


class Failed(Exception):
    """A step that did not work, with what it printed."""


@dataclass(frozen=True)
class Environment:
    """A virtual environment, and which versions are in it."""

    folder: Path
    versions: dict[str, str]

    @property
    def python(self) -> Path:
        return interpreter(self.folder)


def run(*command: str | Path, folder: Path = ROOT, env: dict[str, str] | None = None) -> str:
    """What it prints; what fails says all of it."""
    ended = subprocess.run(
        [*map(str, command)],
        cwd=folder,
        env={**os.environ, **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if ended.returncode:
        raise Failed(f"{' '.join(map(str, command))}\n{ended.stdout}")
    return ended.stdout


def interpreter(folder: Path) -> Path:
    """Of an environment."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def pip(python: Path, *arguments: str | Path) -> str:
    """Only wheels: building somebody's package takes minutes, and a version without one for this Python is too low a bound."""
    options = ("--quiet", "--disable-pip-version-check", "--no-compile", "--only-binary", ":all:")
    return run(python, "-m", "pip", "install", *options, *arguments)


def make_environment(
    python: Path, name: str, requirements: Sequence[str | Path], constraints: Sequence[str] = ()
) -> Environment:
    """A fresh one."""
    folder = ROOT / f"{WORK}-{name}"
    run(python, "-m", "venv", "--clear", folder)
    limits = folder / "constraints.txt"
    limits.write_text("".join(f"{line}\n" for line in constraints), "utf-8")
    pip(interpreter(folder), "--constraint", limits, *requirements)
    listed = run(interpreter(folder), "-m", "pip", "--disable-pip-version-check", "list", "--format", "json")
    rows = json.loads(listed[listed.index("[") : listed.rindex("]") + 1])
    return Environment(folder, {row["name"].lower(): row["version"] for row in rows})


def build_wheels(python: Path, project: Project) -> tuple[Path, Path]:
    """stepscope without its extensions, which fits every Python, and its recorder."""
    folder = ROOT / f"{WORK}-wheel"
    source = copied_source(folder)
    builder = make_environment(python, "build", project.build)
    options = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation")
    command = (builder.python, "-m", "pip", "wheel", *options, "--wheel-dir", folder)
    run(*command, source / "packaging" / "capture", source, env={"CC": "false"})
    (wheel,), (recorder,) = folder.glob("stepscope-*.whl"), folder.glob("stepscope_capture-*.whl")
    return wheel, recorder


def copied_source(folder: Path) -> Path:
    """A copy, so that what is built does not end up among the sources, nor what was built before in the wheel."""
    shutil.rmtree(folder, ignore_errors=True)
    source = folder / "source"
    for name in ("src", "docs", "packaging"):
        shutil.copytree(ROOT / name, source / name, ignore=_LEFT_OUT)
    for name in ("pyproject.toml", "setup.py", "requirements.txt", "README.md", "LICENSE", "MANIFEST.in"):
        shutil.copy2(ROOT / name, source / name)
    return source


def find_extensions(python: Path, project: Project) -> Extensions:
    """The compiled hot loops for this Python: of the sources' folder, of an earlier run, or built now. Empty without a compiler."""
    suffix = run(python, "-c", _SUFFIX).strip()
    for folder in (ROOT / NATIVE, _store(suffix)):
        found = _extensions_in(folder, suffix)
        if _is_complete(found, suffix) and (folder != ROOT / NATIVE or _is_fresh(found)):
            return found
    return _build_extensions(python, project, suffix)


def _extensions_in(folder: Path, suffix: str) -> Extensions:
    return {str(path.relative_to(folder)): path for path in sorted(folder.rglob(f"*{suffix}"))}


def _sources() -> list[Path]:
    return sorted(path for ending in ("*.py", "*.pxd") for path in (ROOT / NATIVE).rglob(ending))


def _is_complete(found: Extensions, suffix: str) -> bool:
    hot = [path for path in _sources() if "cython.compiled" in path.read_text("utf-8")]
    wanted = {str(path.relative_to(ROOT / NATIVE).with_suffix("")) for path in hot}
    return {"_shared", *wanted} <= {name.removesuffix(suffix) for name in found}


def _is_fresh(found: Extensions) -> bool:
    oldest = min(path.stat().st_mtime for path in found.values())
    return oldest >= max(path.stat().st_mtime for path in _sources())


def _store(suffix: str) -> Path:
    """Named after the sources: what was built from others is not found."""
    sources = [*_sources(), ROOT / "setup.py"]
    digest = blake2b(b"\0".join(path.read_bytes() for path in sources), digest_size=8).hexdigest()
    return ROOT / f"{WORK}-native" / f"{digest}{suffix}"


def _build_extensions(python: Path, project: Project, suffix: str) -> Extensions:
    source = copied_source(ROOT / f"{WORK}-native-build")
    builder = make_environment(python, "build", project.build)
    run(builder.python, "setup.py", "--quiet", "build_ext", "--inplace", folder=source)
    store = _store(suffix)
    _copy_all(_extensions_in(source / NATIVE, suffix), store)
    shutil.rmtree(source.parent, ignore_errors=True)
    return _extensions_in(store, suffix)


def _copy_all(extensions: Extensions, place: Path) -> None:
    for name, path in extensions.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, place / name)


def add_extensions(environment: Environment, extensions: Extensions) -> None:
    """Put the compiled hot loops beside their sources."""
    _copy_all(extensions, Path(run(environment.python, "-c", _PLACE).strip()) / "stepscope" / "native")
