"""Problems: each kind of defect is told once, with how often it was met."""

from __future__ import annotations

import polars as pl

from stepscope.problems.entry import Severity
from stepscope.trace.problems import Problem, Problems
from stepscope.trace.schema import TABLES


def test_the_same_problem_is_told_once() -> None:
    found = Problems()
    found.add(Problem("cut", "Cut", "at byte 5; {count} in all", "copy it", "error", 2))
    found.add(Problem("cut", "Cut", "at byte 9", "copy it", "error", 1_000))
    found.add(Problem("cut", "Another title", "x"))
    assert len(found) == 2
    assert found.frame().rows() == [
        ("cut", "error", "Cut", "at byte 5; 1,002 in all", "copy it", 1_002),
        ("cut", "warning", "Another title", "x", "", 1),
    ]


def test_errors_come_first() -> None:
    found = Problems()
    severities: tuple[Severity, ...] = ("info", "warning", "error", "info", "error")
    for severity in severities:
        found.add(Problem(f"{severity} {len(found)}", "t", "d", severity=severity))
    assert [problem.code for problem in found.all()] == [
        "error 2",
        "error 4",
        "warning 1",
        "info 0",
        "info 3",
    ]


def test_no_problems() -> None:
    assert Problems().frame().schema == pl.Schema(TABLES["problems"])
    assert len(Problems()) == 0
