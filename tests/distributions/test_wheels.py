"""The two distributions: no file in both, together the whole tree, and the recorder works with nothing else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from stepscope import __version__
from tests.distributions.build import (
    PLACES,
    RECORDER,
    WHOLE,
    build,
    copy_of_sources,
    files_of,
    metadata_of,
    unpacked,
)

pytest.importorskip("setuptools")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_sources(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def wheels(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    target = tmp_path_factory.mktemp("wheels")
    return {name: build("build_wheel", sources / place, target) for name, place in PLACES.items()}


@pytest.fixture(scope="module")
def recorder(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the recorder alone."""
    folder = tmp_path_factory.mktemp("alone")
    zipfile.ZipFile(wheels[RECORDER]).extractall(folder)
    return folder


def alone(recorder: Path, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Python without any site-packages, and the recorder."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("STEPSCOPE_", "PYTHON"))}
    return subprocess.run(
        [sys.executable, "-S", *arguments],
        env={**env, "PYTHONPATH": str(recorder)},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


def in_tree() -> set[str]:
    """What belongs into the one or the other."""
    left_out = (".so", ".pyd", ".pyc", ".c")
    files = [path for path in (ROOT / "src" / "stepscope").rglob("*") if path.is_file()]
    return {str(path.relative_to(ROOT / "src")) for path in files if path.suffix not in left_out}


def test_no_file_is_in_both_and_together_they_are_the_tree(wheels: dict[str, Path]) -> None:
    light, rest = files_of(wheels[RECORDER]), files_of(wheels[WHOLE])
    assert light & rest == set()
    assert light | {name for name in rest if not name.startswith("stepscope/docs/")} == in_tree()
    assert "stepscope/docs/index.md" in rest


def test_the_recorder_needs_nothing_and_the_rest_needs_the_same_version(wheels: dict[str, Path]) -> None:
    light, rest = (metadata_of(wheels[name], "METADATA") for name in (RECORDER, WHOLE))
    needed = re.findall(r"^Requires-Dist: (?!.*extra ==)(.+)$", light, re.MULTILINE)
    assert needed == []
    assert f"\nRequires-Dist: stepscope-capture=={__version__}\n" in rest
    assert {re.findall(r"^Version: (.+)$", text, re.MULTILINE)[0] for text in (light, rest)} == {__version__}
    assert "py3-none-any" in wheels[RECORDER].name


def test_the_command_is_in_one_of_them(wheels: dict[str, Path]) -> None:
    scripts = {name: "[console_scripts]" in metadata_of(wheels[name], "entry_points.txt") for name in PLACES}
    assert scripts == {RECORDER: True, WHOLE: False}


@pytest.mark.parametrize("name", PLACES)
def test_a_wheel_of_the_sdist_has_the_same_files(
    name: str, sources: Path, wheels: dict[str, Path], tmp_path: Path
) -> None:
    sdist = build("build_sdist", sources / PLACES[name], tmp_path / "sdist")
    project = unpacked(sdist, tmp_path)
    assert files_of(build("build_wheel", project, tmp_path / "wheel")) == files_of(wheels[name])


def test_verbs_of_the_rest_say_what_to_install(recorder: Path) -> None:
    ended = alone(recorder, "-m", "stepscope", "report", "folder")
    assert ended.returncode == 2
    assert "pip install stepscope" in ended.stderr
    assert "Traceback" not in ended.stderr
    code = "import stepscope\ntry: stepscope.report\nexcept ImportError as error: print(error)"
    assert "pip install stepscope" in alone(recorder, "-c", code).stdout


def test_the_recorder_alone_records(recorder: Path, tmp_path: Path) -> None:
    """The job's Python has site-packages, as the hook needs: the recorder comes from its own folder all the same."""
    lines = ("import stepscope", "print(stepscope.__file__)", "for _ in range(9): stepscope.step()")
    (tmp_path / "job.py").write_text("\n".join(lines))
    words = ("-m", "stepscope", "run", "--steps", "3:5", "-o", "out", "--", sys.executable, "job.py")
    ended = alone(recorder, *words, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "Recorded steps 3 to 5 into out." in ended.stderr
    assert Path(ended.stdout.strip()).is_relative_to(recorder)
    assert list((tmp_path / "out").rglob("*.stepscope.json"))


def test_the_rest_is_found_in_another_folder(wheels: dict[str, Path], recorder: Path, tmp_path: Path) -> None:
    """As in an environment on top of another one that has the recorder."""
    zipfile.ZipFile(wheels[WHOLE]).extractall(tmp_path)
    found = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import stepscope.units, stepscope.names"
    ended = alone(recorder, "-c", found)
    assert ended.returncode == 0, ended.stderr
