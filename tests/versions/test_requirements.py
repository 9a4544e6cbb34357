"""Lower bounds: every dependency has one, and the lowest version is what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.versions.requirements import Unbounded, parse, read_project


def test_every_dependency_of_ours_has_a_lower_bound() -> None:
    project = read_project()
    names = [each.name for each in project.requirements]
    assert {"polars", "typer", "pandas", "distributed", "grpcio"} <= set(names)
    assert "ruff" not in names  # what only developers need
    assert all(each.lowest for each in project.requirements)
    assert set(project.extras) >= {"pandas", "dask", "grpc"}
    assert project.pythons == ("3.10", "3.11", "3.12", "3.13", "3.14")


@pytest.mark.parametrize(
    ("line", "pin"),
    [
        ("typer>=0.20", "typer==0.20"),
        ("typer >= 0.20, < 1", "typer==0.20"),
        ("typer~=0.20.1", "typer==0.20.1"),
        ("typer==0.20", "typer==0.20"),
        ("dask[array]>=2026.1", "dask==2026.1"),
        ("tomli>=2; python_version < '3.11'", "tomli==2; python_version < '3.11'"),
        ("ruamel.yaml>=0.18", "ruamel.yaml==0.18"),
    ],
)
def test_the_lowest_version(line: str, pin: str) -> None:
    assert parse(line).pin == pin


@pytest.mark.parametrize("line", ["typer", "typer<1", "typer>0.19", "mypy==2.4.*", "typer>=1,>=2"])
def test_what_has_no_lower_bound(line: str) -> None:
    with pytest.raises(Unbounded, match=r"write (typer|mypy)>="):
        _ = parse(line).lowest


def test_what_is_no_requirement() -> None:
    with pytest.raises(ValueError, match="is not a requirement"):
        parse(">=1")


def test_a_project_without_extras(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text(
        '[build-system]\nrequires = ["setuptools"]\n'
        '[project]\nclassifiers = ["Programming Language :: Python :: 3.12"]\n'
    )
    (tmp_path / "requirements.txt").write_text("# of ours\na>=1  # always\n")
    found = read_project(file)
    assert (found.extras, found.pythons, [each.pin for each in found.requirements]) == (
        (),
        ("3.12",),
        ["a==1"],
    )
