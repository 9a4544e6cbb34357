"""The texts of a check that the report makes."""

from __future__ import annotations

from typing import NamedTuple

from stepscope.trace.problems import Severity


class Texts(NamedTuple):
    """What is wrong, how that comes, what to do, and how much it weighs."""

    severity: Severity
    title: str
    cause: str
    fix: str
