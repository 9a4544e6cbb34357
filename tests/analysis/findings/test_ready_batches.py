"""Batches that were ready when the recording began."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.case import Case
from tests.builders.cases import case_of_text, gemm, steps

WORKERS, NO_WORKERS = "_MultiProcessingDataLoaderIter", "_SingleProcessDataLoaderIter"


def case_of(
    unprofiled_us: int,
    loader: str = WORKERS,
    waited_us: int = 200,
    lengths_us: Sequence[int] = (),
    workers: int = 4,
) -> Case:
    """Steps of 1 ms that wait for batches, of a job with this unprofiled step; `lengths_us` of steps before the window."""
    wait = f"main  0  {waited_us}  enumerate(DataLoader)#{loader}.__next__  annotation  -"
    timed = {
        "unprofiled_step": {"mean_ns": unprofiled_us * 1_000, "count": 9},
        "unprofiled": {"before": {"workers": workers}},
        "steps": {"before": {"durations_ns": [each * 1_000 for each in lengths_us]}},
    }
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


BURSTS = [900, 9_500, 950, 920, 930, 900, 12_000, 940, 9_900, 910, 920, 950, 9_800, 930, 900, 910]
EVERY_FOURTH = [900, 920, 910, 9_900] * 4


@pytest.mark.parametrize("lengths_us", [BURSTS, EVERY_FOURTH])
def test_batches_that_come_in_bursts_are_waited_for_in_the_job(lengths_us: Sequence[int]) -> None:
    """Four workers deliver together: none of the recorded steps waited, some of the others waited ten times as long."""
    case = case_of(3_000, waited_us=1, lengths_us=lengths_us)
    assert case.had_ready_batches
    assert case.played_ns == pytest.approx(3_000_000, rel=0.05)
    found = next(each for each in apply_rules(case) if each.code == "input-bound")
    assert found.speedup.low > 1.5
    assert "longer than recorded ones" in found.detail


@pytest.mark.parametrize(
    ("lengths_us", "loader", "workers"),
    [
        ([2_900, 3_000, 3_100, 3_000] * 4, WORKERS, 4),
        (BURSTS, NO_WORKERS, 4),
        (EVERY_FOURTH, WORKERS, 3),
        (EVERY_FOURTH[1:], WORKERS, 8),
    ],
)
def test_other_long_steps_are_no_waits_for_workers(
    lengths_us: Sequence[int], loader: str, workers: int
) -> None:
    """All steps are longer, nobody makes batches beside the step, or slow ones come back at another distance."""
    case = case_of(3_000, loader, 1, lengths_us, workers)
    assert not case.had_ready_batches


@pytest.mark.parametrize(("workers", "lacks"), [(6, False), (4, True)])
def test_slow_steps_as_far_apart_as_there_are_workers_are_known_waits(workers: int, lacks: bool) -> None:
    """Also where the window is too short to hold one: four steps of six."""
    every_sixth = [900, 920, 910, 900, 930, 12_900] * 4
    assert case_of(3_000, waited_us=1, lengths_us=every_sixth, workers=workers).lacks_slow_steps is lacks


@pytest.mark.parametrize(("unprofiled_us", "expected"), [(3_000, 2_000_000), (1_050, 0)])
def test_how_much_longer_the_job_waits(unprofiled_us: int, expected: int) -> None:
    """Against the recorded steps as they run without the profiler, and never less than nothing."""
    assert case_of(unprofiled_us).lacking_wait_ns == pytest.approx(expected, rel=0.1)
