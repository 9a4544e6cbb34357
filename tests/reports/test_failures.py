"""Faults cost what they concern, and each is reported once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import stepscope
from stepscope.analysis.capture_quality.defects import capture_checks
from stepscope.analysis.findings import apply
from stepscope.analysis.findings.faults import RAISE_RULES
from stepscope.analysis.findings.registry import find_rules
from stepscope.gate.evidence import explain_unseen
from stepscope.gate.wording import NO_FINDINGS
from stepscope.profiles.load import load
from stepscope.profiles.profile import Profile
from stepscope.reports import build as module
from stepscope.reports.build import report
from stepscope.reports.failures import RAISE
from stepscope.reports.model.report import Problem, Report
from stepscope.reports.render.brief import as_brief
from stepscope.reports.sections import problems
from tests.builders.traces import trace

SAMPLE = Path(stepscope.__file__).parent / "samples" / "tiny_gpt.pt.trace.json.gz"


@pytest.fixture(autouse=True)
def _spared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(RAISE)
    monkeypatch.delenv(RAISE_RULES)


def fails(*_: Any) -> Any:
    raise ZeroDivisionError("oh no")


def told(found: Report) -> list[Problem]:
    return [problem for problem in found.problems if problem.code == "analysis-failed"]


def test_rules_that_raise_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = {finding.code for finding in report(load(SAMPLE), sections=["findings"]).findings}
    lost = ["device-sync", "input-bound"]
    broken = [replace(rule, find=fails) if rule.code in lost else rule for rule in find_rules()]
    monkeypatch.setattr(apply, "rules_for", lambda _: broken)
    found = report(load(SAMPLE))
    assert {finding.code for finding in found.findings} == usual - {*lost} != usual
    (problem,) = told(found)
    assert sorted(problem.title.removeprefix("stepscope could not look for: ").split(", ")) == lost
    assert (problem.detail, problem.count, problem.severity) == ("ZeroDivisionError: oh no", 2, "error")
    assert problem.title in as_brief(found)
    assert [explain_unseen(code, found) for code in (*lost, "low-mxu")] == [NO_FINDINGS, NO_FINDINGS, ""]


def test_a_rule_over_ranks_leaves_the_findings_of_the_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = Profile("/x", [trace(0), trace(1)], [0, 1])
    usual = report(ranks)
    monkeypatch.setattr(module, "_judge_job", fails)
    found = report(ranks)
    assert [problem.title for problem in told(found)] == ["stepscope could not compute: findings"]
    assert {finding.code for finding in found.findings} <= {finding.code for finding in usual.findings}
    assert found.findings and found.sentence


def test_a_verdict_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "write_sentence", fails)
    found = report(load(SAMPLE))
    assert [problem.title for problem in told(found)] == ["stepscope could not compute: findings"]
    assert found.findings and not found.sentence
    assert as_brief(found)


def test_a_check_of_the_capture_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_fails(*known: Any) -> list[Any]:
        return [fails, *capture_checks(*known)]

    usual = report(load(SAMPLE), sections=["problems"]).problems
    monkeypatch.setattr(problems, "capture_checks", one_fails)
    found = report(load(SAMPLE), sections=["problems"])
    assert [problem.title for problem in told(found)] == ["stepscope could not compute: problems"]
    assert [problem for problem in found.problems if problem.code != "analysis-failed"] == usual
