"""Trials of `stepscope try`: the page of those that were kept, and trials without a change."""

from __future__ import annotations

import pytest

from benchmarks.trying import __main__ as trying
from benchmarks.trying import same
from benchmarks.trying.page import PAGE, page
from stepscope.capture.trial.changes import CHANGES
from stepscope.reports.model.report import Interval
from stepscope.trial.conduct import Outcome, Tried
from stepscope.trial.recorded import Row


def test_the_page_is_that_of_the_recorded_trials() -> None:
    assert PAGE.read_text("utf-8") == page(), "run python -m benchmarks.trying.page docs/trust.md"


def test_the_page_counts_promises_that_held() -> None:
    kept = Row("input-bound", "workers", Interval(1.5, 2.0, 2.5), Interval(1.9, 2.1, 2.3), "a|b.py")
    broken = Row("input-bound", "workers", Interval(4.0, 5.0, 6.0), Interval(1.9, 2.0, 2.3))
    text = page([kept, broken])
    assert "1 of 2 promises held" in text
    assert "| `input-bound` | 2 | 1 | 0.73 (0.40–1.05) |" in text
    assert "a\\|b.py" in text
    assert "No trial was kept yet" in page([])


def test_jobs_are_there_and_changes_are_known() -> None:
    for job in trying.ALL:
        assert (trying.JOBS / f"{job.name}.py").exists()
        assert set(job.changes) <= CHANGES.keys()
    assert [job.name for job in trying.chosen("", has_gpu=False)] == ["workers"]
    assert len(list(trying.chosen("fp32", has_gpu=True))) == 3


@pytest.mark.parametrize(
    ("low", "high", "is_hit"), [(0.9, 1.1, True), (1.01, 1.1, False), (0.8, 0.99, False)]
)
def test_an_interval_that_contains_1(low: float, high: float, is_hit: bool) -> None:
    outcome = Outcome(1e6, 0.02, [Tried("nothing", Interval(low, (low + high) / 2, high))])
    assert same.is_hit(outcome) is is_hit
    assert ("contains 1" in same.line(outcome)) is is_hit


def test_a_trial_without_a_change() -> None:
    (outcome,) = same.try_same(trials=1, rounds=2, seconds=0.0)
    assert outcome.tried[0].measured is not None
    assert outcome.steps >= 20
