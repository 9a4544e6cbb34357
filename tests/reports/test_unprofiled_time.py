"""What findings of several ranks save, in the time of a job without the profiler."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.options import Options
from stepscope.reports.model.report import Steps, Straggler
from stepscope.reports.sections.findings import OfRank, joined
from stepscope.reports.sections.steps import estimate
from stepscope.reports.unprofiled_time import in_unprofiled_time


def finding(code: str, saves: int, **evidence: object) -> Finding:
    return Finding(
        code=code,
        class_="time",
        title="",
        detail="",
        saves_ns_per_step=saves,
        speedup=Interval(1.1, 1.2, 1.3),
        evidence=evidence,
    )


RANKS = [OfRank(0, [], None, 0.5, 0.25), OfRank(1, [], None, 0.7, 0.7)]


def test_each_saving_is_in_the_time_of_its_rank_and_a_jobs_in_the_mean() -> None:
    """Slow steps are part of the mean step, other savings of the usual one."""
    found = [
        finding("input-bound", 1000, rank=0, rank_saves_ns_per_step=2000),
        finding("step-outliers", 990, rank=0),
        finding("device-sync", 980, rank=1),
        finding("straggler", 970, rank=1),
    ]
    told = in_unprofiled_time(found, RANKS, None, None)
    assert {one.code: one.saves_ns_per_step for one in told} == {
        "device-sync": 686, "straggler": 582, "step-outliers": 495, "input-bound": 250
    }  # fmt: skip
    assert [one.code for one in told] == ["device-sync", "straggler", "step-outliers", "input-bound"]
    assert told[-1].evidence["rank_saves_ns_per_step"] == 500
    assert {one.speedup for one in told} == {Interval(1.1, 1.2, 1.3)}


def test_why_steps_are_slow_still_comes_before_that_they_are() -> None:
    late = Straggler(
        rank=1, ranks=[1], kind="sometimes", always=False, late_ns=1, late_ns_per_step=1, share=0.1,
        steps_late=1, steps=9, last=1, matched=9, late_in=[3],
    )  # fmt: skip
    found = [finding("straggler", 400, rank=1), finding("step-outliers", 900, rank=1, steps=[3])]
    told = in_unprofiled_time(found, RANKS, late, None)
    assert [one.code for one in told] == ["straggler", "step-outliers"]


def test_ranks_are_compared_in_the_time_of_the_recording() -> None:
    """The share that the profiler takes of a rank is no reason to quote another one."""
    ranks = [
        OfRank(0, [finding("input-bound", 500)], None, 0.5, 0.5),
        OfRank(1, [finding("input-bound", 600)], None, 0.9, 0.9),
    ]
    (told,) = joined(ranks, Options())["findings"]
    assert (told.evidence["rank"], told.saves_ns_per_step) == (0, 1000)
    assert ranks[0].found[0].saves_ns_per_step == 500
    (alone,) = joined(ranks[:1], Options())["findings"]
    assert alone.saves_ns_per_step == 500


@pytest.mark.parametrize("shares", [[], [1.0], [0.5, 0.7]])
def test_the_step_without_the_profiler_is_estimated(shares: list[float]) -> None:
    steps = Steps(basis_ns=1000)
    estimate(steps, shares)
    assert steps.estimated_ns == {0: None, 1: 1000, 2: 600}[len(shares)]
    steps = Steps(basis_ns=1000, basis="unprofiled")
    estimate(steps, shares)
    assert steps.estimated_ns is None
