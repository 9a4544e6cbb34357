"""What requirements.txt and pyproject.toml say that stepscope needs, and the lowest versions that they allow."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parent.parent.parent
DEVELOPMENT = "dev"
_REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*([^;]*?)\s*(?:;\s*(.+))?")
_BOUND = re.compile(r"(?:>=|~=|==)\s*([\w.!+-]+)")  # and no ==2.4.*
_CLASSIFIER = re.compile(r"Programming Language :: Python :: (3\.\d+)")


class Unbounded(ValueError):
    """A requirement without a lower bound: nobody can say what works."""


@dataclass(frozen=True)
class Requirement:
    """One line, such as `tomli>=2; python_version < '3.11'`."""

    name: str
    versions: str
    marker: str

    @property
    def lowest(self) -> str:
        """The lower bound."""
        bounds = [found[1] for each in self.versions.split(",") if (found := _BOUND.fullmatch(each.strip()))]
        if len(bounds) != 1:
            raise Unbounded(
                f"{self.name}{self.versions}: write {self.name}>= and the lowest version that works."
            )
        return bounds[0]

    @property
    def pin(self) -> str:
        """The requirement at its lower bound."""
        return f"{self.name}=={self.lowest}" + (f"; {self.marker}" if self.marker else "")


@dataclass(frozen=True)
class Project:
    """What users install, and where it is said to work."""

    requirements: tuple[Requirement, ...]  # those of the extras too
    extras: tuple[str, ...]
    pythons: tuple[str, ...]
    build: tuple[str, ...]


def read_project(path: Path = ROOT / "pyproject.toml") -> Project:
    """All of pyproject.toml, and requirements.txt beside it, but what only developers need."""
    document = msgspec.toml.decode(path.read_bytes())
    project: dict[str, Any] = document["project"]
    extras = {
        name: lines for name, lines in project.get("optional-dependencies", {}).items() if name != DEVELOPMENT
    }
    needed = _lines(path.with_name("requirements.txt"))
    lines = [*needed, *(line for of_extra in extras.values() for line in of_extra)]
    found = map(_CLASSIFIER.fullmatch, project["classifiers"])
    return Project(
        requirements=tuple(map(parse, dict.fromkeys(lines))),
        extras=tuple(extras),
        pythons=tuple(each[1] for each in found if each),
        build=tuple(document["build-system"]["requires"]),
    )


def _lines(path: Path) -> list[str]:
    found = [line.partition("#")[0].strip() for line in path.read_text("utf-8").splitlines()]
    return [line for line in found if line]


def parse(line: str) -> Requirement:
    """A line of requirements.txt or pyproject.toml."""
    found = _REQUIREMENT.fullmatch(line.strip())
    if found is None:
        raise ValueError(f"{line!r} is not a requirement")
    return Requirement(found[1], found[2], found[3] or "")
