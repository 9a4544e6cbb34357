"""The gate against several recordings of a job: few false alarms, and changes well above their noise are found."""

from __future__ import annotations

from random import Random

import pytest

from stepscope.analysis.parts import PARTS
from stepscope.diffs.data.model import Diff, Run
from stepscope.diffs.noise.judge import Ground, measure_step
from stepscope.diffs.noise.machine_speed import Speeds, find_clock
from stepscope.gate.budget import Baseline, Limit
from stepscope.gate.check import check_diff
from tests.builders.jobs.simulated_runs import Job, simulate_run
from tests.sample import pairs

CLOCKS = {part: find_clock(part) for part in PARTS}
LIMIT = Baseline(step_time=Limit(0.0, "share"))


def _count_failures(job: Job, recordings: int, longer: float, runs: int) -> int:
    dice = Random(1000 * recordings + job.ranks)
    return sum(_fails(job, dice, recordings, longer) for _ in range(runs))


def _fails(job: Job, dice: Random, recordings: int, longer: float) -> bool:
    """Whether a run that is longer by this factor fails against recordings of the job, if it may not grow at all."""
    a = simulate_run(job, dice, recordings=recordings).samples
    b = simulate_run(job, dice, longer=longer).samples
    step = measure_step(Ground(a, b, Speeds()), CLOCKS).row
    runs = (Run(path=name, step_source="marker", steps=job.steps) for name in "ab")
    diff = Diff(a=next(runs), b=next(runs), verdict="", significant=False, step=step)
    return not check_diff(diff, LIMIT).passed


def _job(ranks: int, by_run: float = 0.005) -> Job:
    """Of many ranks fewer steps, which take the time of this test."""
    return Job(
        ranks, steps=10 if ranks < 64 else 4, by_run=by_run, by_step=0.01, by_rank=0.002, by_cell=0.003
    )


@pytest.mark.parametrize(
    ("size", "recordings"), pairs([(1, 300), (2, 200), (8, 200), (64, 150)], [3, 5]), ids=str
)
def test_equal_runs_rarely_fail(size: tuple[int, int], recordings: int) -> None:
    """At most 8 % at a nominal 5 %, for these numbers of ranks and runs."""
    ranks, runs = size
    assert _count_failures(_job(ranks), recordings, 1.0, runs) <= 0.08 * runs


@pytest.mark.parametrize("by_run", [0.001, 0.015, 0.03])
def test_however_much_runs_of_the_job_vary(by_run: float) -> None:
    assert _count_failures(_job(1, by_run), 3, 1.0, 200) <= 0.08 * 200


@pytest.mark.parametrize(("recordings", "longer"), [(5, 1.03), (3, 1.04)])
@pytest.mark.parametrize("ranks", [1, 8])
def test_changes_above_the_noise_of_runs_fail(ranks: int, recordings: int, longer: float) -> None:
    """Runs vary by 0.5 %: 3 % more are found with five recordings of the baseline, 4 % with three."""
    assert _count_failures(_job(ranks), recordings, longer, 100) >= 0.9 * 100


def test_one_recording_shows_no_noise_of_runs() -> None:
    """What runs in general vary by is assumed."""
    assert _count_failures(_job(1), 1, 1.03, 20) == 0
