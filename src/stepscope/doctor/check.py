"""A check: one question about an environment, a script or a profile, with the texts for those who meet the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from stepscope.trace.problems import Severity

Group = Literal["environment", "script", "profile"]
GROUPS: tuple[Group, ...] = ("environment", "script", "profile")
Subject = TypeVar("Subject")


@dataclass(frozen=True)
class Sign:
    """What a check saw: the evidence, and where it can be more exact than the check's own texts, those."""

    evidence: str
    fix: str = ""
    title: str = ""
    severity: Severity | None = None


Look = Callable[[Subject], Iterable[Sign]]
# Why the question does not arise for this subject; empty if it does.
Needs = Callable[[Subject], str]


@dataclass(frozen=True)
class Check(Generic[Subject]):
    """`title` says what is wrong, `cause` how that comes and what it leads to, `fix` what to do in general."""

    code: str
    group: Group
    title: str
    cause: str
    fix: str
    severity: Severity
    look: Look[Subject]
    needs: Needs[Subject]


def always(_subject: object) -> str:
    """The question always arises."""
    return ""


@dataclass
class Checks(Generic[Subject]):
    """The checks of one group, in the order in which they are told."""

    group: Group
    all: list[Check[Subject]]

    def add(
        self,
        code: str,
        title: str,
        *,
        cause: str,
        fix: str,
        severity: Severity = "warning",
        needs: Needs[Subject] = always,
    ) -> Callable[[Look[Subject]], Look[Subject]]:
        """Registers the function below as a check."""

        def registered(look: Look[Subject]) -> Look[Subject]:
            self.all.append(Check(code, self.group, title, cause, fix, severity, look, needs))
            return look

        return registered
