"""A check: one question about an environment, a script or a profile, with the texts of its answer."""

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
    """What a check found: the evidence, and where they are more exact than the check's own, its fix, title and severity."""

    evidence: str
    fix: str = ""
    title: str = ""
    severity: Severity | None = None


Look = Callable[[Subject], Iterable[Sign]]
# Why the check does not apply to this subject; empty if it does.
Needs = Callable[[Subject], str]


@dataclass(frozen=True)
class Check(Generic[Subject]):
    """`title` says what is wrong, `cause` why and with which consequences, `fix` what to do in general."""

    code: str
    group: Group
    title: str
    cause: str
    fix: str
    severity: Severity
    look: Look[Subject]
    needs: Needs[Subject]


def always(_subject: object) -> str:
    """The check always applies."""
    return ""


@dataclass
class Checks(Generic[Subject]):
    """The checks of one group, in the order of the output."""

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
        """Register the function below as a check."""

        def registered(look: Look[Subject]) -> Look[Subject]:
            self.all.append(Check(code, self.group, title, cause, fix, severity, look, needs))
            return look

        return registered
