"""A rule that raises costs its own finding only, and is told; in tests it raises."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from stepscope.analysis.findings import apply
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import as_change
from stepscope.analysis.findings.faults import PROMISES, RAISE_RULES, Fault
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.owned import owned_slices
from stepscope.analysis.findings.registry import rules_for
from stepscope.analysis.findings.rule import Rule
from stepscope.analysis.findings.rules.host.file_io import RULE
from tests.builders.cases import case_of_text, gemm, steps

WAITING = steps("main  0  700  DataLoader  annotation  -", *gemm(700, 285))


class PanicException(BaseException):
    """As Polars names its own."""


def raising(error: BaseException) -> Rule[Case]:
    """A rule that claims all time, says so everywhere, and then raises."""

    def find(case: Case) -> Finding | None:
        case.claim(case.free())
        case.changes["file-io"] = as_change(case.plan)
        case.of_slow_steps.add("file-io")
        raise error

    return replace(RULE, find=find, turn=1)


def with_rule(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    monkeypatch.setattr(apply, "rules_for", lambda case: [raising(error), *rules_for(case)])


@pytest.fixture
def spared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(RAISE_RULES)


@pytest.mark.usefixtures("spared")
@pytest.mark.parametrize(
    "error", [ZeroDivisionError("oh\nmore"), PanicException("oh"), pl.exceptions.ShapeError("oh")]
)
def test_a_fault_costs_only_its_finding(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    whole = case_of_text(WAITING)
    usual = apply.apply_rules(whole)
    with_rule(monkeypatch, error)
    case = case_of_text(WAITING)
    assert apply.apply_rules(case) == usual and usual
    assert case.faults == [Fault("file-io", f"{type(error).__name__}: oh")]
    assert case.changes.keys() == whole.changes.keys() and not case.of_slow_steps
    assert {code: len(rows) for code, rows in owned_slices(case).items()} == {
        code: len(rows) for code, rows in owned_slices(whole).items()
    }


@pytest.mark.usefixtures("spared")
def test_what_is_said_after_all_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of what it said is taken back."""

    def say(case: Case) -> None:
        case.earlier[0].detail += " Half."
        case.earlier[0].evidence["half"] = 1
        raise KeyError("a")

    usual = apply.apply_rules(case_of_text(WAITING))
    monkeypatch.setattr(apply, "_AFTER_RULES", (say, *apply._AFTER_RULES))
    case = case_of_text(WAITING)
    assert apply.apply_rules(case) == usual
    assert case.faults == [Fault(PROMISES, "KeyError: 'a'")]


@pytest.mark.usefixtures("spared")
def test_whoever_ends_the_command_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with_rule(monkeypatch, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        apply.apply_rules(case_of_text(WAITING))


def test_in_tests_it_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    with_rule(monkeypatch, ZeroDivisionError("oh"))
    with pytest.raises(ZeroDivisionError):
        apply.apply_rules(case_of_text(WAITING))
