"""A check: one question about an environment, a script or a profile. The words of its answer are in the catalogue of problems."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Generic, Literal, TypeVar

from stepscope.problems.catalogue import CATALOGUE
from stepscope.problems.entry import Entry, Words

Group = Literal["environment", "script", "profile"]
GROUPS: tuple[Group, ...] = ("environment", "script", "profile")
Subject = TypeVar("Subject")


class Sign:
    """What a check found: the evidence, and the case and facts that the catalogue needs for its words."""

    def __init__(self, evidence: str, case: str = "", **facts: str) -> None:
        self.evidence = evidence
        self.case = case
        self.facts = facts

    def words(self, entry: Entry) -> Words:
        """Title, cause, fix and severity of this case."""
        return entry.words(self.case, self.facts)


class Quote(Sign):
    """What the report found already, with its words."""

    def __init__(self, evidence: str, said: Words) -> None:
        super().__init__(evidence)
        self._said = said

    def words(self, entry: Entry) -> Words:
        """Those of the report."""
        return self._said


Look = Callable[[Subject], Iterable[Sign]]
# Why the check does not apply to this subject; empty if it does.
Needs = Callable[[Subject], str]


@dataclass(frozen=True)
class Check(Generic[Subject]):
    """`look` yields a sign for each thing that is wrong; `entry` has the words for it."""

    entry: Entry
    group: Group
    look: Look[Subject]
    needs: Needs[Subject]

    @property
    def code(self) -> str:
        """What names the problem."""
        return self.entry.code


def always(_subject: object) -> str:
    """The check always applies."""
    return ""


@dataclass
class Checks(Generic[Subject]):
    """The checks of one file."""

    group: Group
    all: list[Check[Subject]] = field(default_factory=list)

    def add(
        self, problem: str | Entry, *, needs: Needs[Subject] = always
    ) -> Callable[[Look[Subject]], Look[Subject]]:
        """Register the function below as a check: of a code of the catalogue, or with an entry that only this check needs."""
        entry = CATALOGUE[problem] if isinstance(problem, str) else problem

        def registered(look: Look[Subject]) -> Look[Subject]:
            self.all.append(Check(entry, self.group, look, needs))
            return look

        return registered


def discover(package: str, folder: Sequence[str]) -> list[Check[Any]]:
    """The checks of every module in the folder of a package, by the names of the modules: a new file needs no registration."""
    modules = [import_module(f"{package}.{module.name}") for module in iter_modules(folder)]
    found = [getattr(module, "CHECKS", None) for module in modules]
    return [check for checks in found if isinstance(checks, Checks) for check in checks.all]
