"""The licences of all that an installed stepscope needs, from the packages' own metadata: unknown and copyleft ones fail."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

# What may be shipped with, and linked from, software under Apache-2.0.
PERMISSIVE = re.compile(
    r"\b(MIT|BSD|0BSD|Apache|ISC|PSF|PSF-2\.0|Python Software Foundation|Zlib|Unlicense|CC0|Zope|ZPL)\b",
    re.IGNORECASE,
)
COPYLEFT = re.compile(r"\b(A?GPL|LGPL|GNU|SSPL|EUPL|CC-BY-NC)", re.IGNORECASE)
_CLASSIFIER = "License :: "
# A whole licence in the field is recognised by how it begins.
_HEAD = 300


@dataclass(frozen=True)
class Package:
    """One installed distribution, and what its metadata says of its licence."""

    name: str
    expression: str = ""
    field: str = ""
    classifiers: tuple[str, ...] = ()

    @property
    def licence(self) -> str:
        """The most exact statement: the SPDX expression, else the classifiers, else the free field."""
        named = [line.rpartition(" :: ")[2] for line in self.classifiers if line.startswith(_CLASSIFIER)]
        named = [name for name in named if name != "OSI Approved"]
        return self.expression or "; ".join(named) or self.field[:_HEAD]


def faults(packages: Iterable[Package]) -> list[str]:
    """In words, each with the package; empty if all may be used."""
    return [fault for package in packages if (fault := _fault(package))]


def _fault(package: Package) -> str:
    licence = package.licence
    choices = re.split(r"\bOR\b", licence) if package.expression else [licence]
    if any(PERMISSIVE.search(each) and not COPYLEFT.search(each) for each in choices):
        return ""
    kind = "copyleft" if COPYLEFT.search(licence) else "unknown"
    return f"{package.name}: {kind} licence ({' '.join(licence.split())[:80] or 'none given'})"


def parse(rows: Iterable[dict[str, Any]]) -> list[Package]:
    """Of what `LIST` prints in the environment."""
    return [
        Package(
            str(row["name"]),
            str(row.get("expression") or ""),
            str(row.get("field") or ""),
            tuple(map(str, row.get("classifiers") or ())),
        )
        for row in rows
    ]


# Run in the environment itself, which has nothing of the tests.
LIST = """
import json
from importlib.metadata import distributions
rows = [
    {"name": each.metadata["Name"], "expression": each.metadata.get("License-Expression"),
     "field": each.metadata.get("License"), "classifiers": each.metadata.get_all("Classifier")}
    for each in distributions() if each.metadata["Name"] not in ("pip", "setuptools")
]
print(json.dumps(rows))
"""
