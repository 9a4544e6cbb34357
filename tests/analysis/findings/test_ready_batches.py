"""Batches that were ready when the recording began."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.case import Case
from tests.builders.cases import case_of_text, gemm, steps

WORKERS, NO_WORKERS = "_MultiProcessingDataLoaderIter", "_SingleProcessDataLoaderIter"


def case_of(unprofiled_us: int, loader: str = WORKERS, waited_us: int = 200) -> Case:
    """Steps of 1 ms that wait for batches, of a job with this unprofiled step."""
    wait = f"main  0  {waited_us}  enumerate(DataLoader)#{loader}.__next__  annotation  -"
    timed = {"unprofiled_step": {"mean_ns": unprofiled_us * 1_000, "count": 9}}
    case = case_of_text(steps(wait, *gemm(waited_us, 950 - waited_us), count=4), capture=timed)
    case.steps = replace(case.steps, source="marker")
    return case


def test_what_the_recording_lacks_of_the_step_is_waited_for() -> None:
    case = case_of(3_000)
    assert case.had_ready_batches
    assert case.played_ns == pytest.approx(3_000_000, rel=0.05)
    assert case.replay_fits


def test_the_lacking_wait_goes_with_the_fix() -> None:
    def promised(unprofiled_us: int) -> float:
        found = apply_rules(case_of(unprofiled_us))
        return next(each for each in found if each.code == "input-bound").speedup.mid

    assert promised(1_000) < 1.5
    assert promised(1_900) > 1.5
    assert promised(3_000) > 2


@pytest.mark.parametrize(
    ("unprofiled_us", "loader", "waited_us"),
    [(1_050, WORKERS, 200), (3_000, NO_WORKERS, 200), (3_000, WORKERS, 1)],
)
def test_else_the_plan_stays(unprofiled_us: int, loader: str, waited_us: int) -> None:
    """A step that is hardly longer, a loader without a queue, a queue that never ran empty."""
    assert not case_of(unprofiled_us, loader, waited_us).had_ready_batches


@pytest.mark.parametrize(("unprofiled_us", "expected"), [(3_000, 2_000_000), (1_050, 0)])
def test_how_much_longer_the_job_waits(unprofiled_us: int, expected: int) -> None:
    """Against the recorded steps as they run without the profiler, and never less than nothing."""
    assert case_of(unprofiled_us).lacking_wait_ns == pytest.approx(expected, rel=0.1)
