"""Null tests: runs that differ by noise alone are rarely called different, however many ranks share their slow steps."""

from __future__ import annotations

from random import Random

import pytest

from stepscope.diffs.build import diff_sides
from stepscope.diffs.noise.crossed import Layout
from stepscope.diffs.noise.estimate import RunNoise, estimate_noise
from tests.builders.jobs.simulated_runs import Job, simulate_run
from tests.sample import pairs

MOST_FALSE = 0.08  # at a nominal 5 %
PAIRS = 300  # 8 % of these is 2.4 standard errors above 5 %; of 64 ranks 1,200 other pairs gave 5.3 %


@pytest.mark.parametrize(
    ("ranks", "job"), pairs([1, 2, 8, 64], [Job(), Job(by_step=0.02, by_rank=0.02, by_cell=0.02)])
)
def test_the_spread_of_steps_and_ranks_makes_few_false_alarms(ranks: int, job: Job) -> None:
    """Without what is assumed of runs in general, which hides a wrong spread."""
    dice, job = Random(20 + ranks), Job(ranks, job.steps, 0.0, job.by_step, job.by_rank, job.by_cell)
    alarms = sum(_differ(job, dice) for _ in range(PAIRS))
    assert alarms <= MOST_FALSE * PAIRS


def _differ(job: Job, dice: Random) -> bool:
    cells = [simulate_run(job, dice).samples.cells for _ in range(2)]
    a, b = (each["ns"].to_list() for each in cells)
    noise = estimate_noise(a, b, (Layout(cells[0]), Layout(cells[1])), RunNoise())
    assert noise is not None
    return noise.p_value(sum(b) / len(b) - sum(a) / len(a)) < 0.05


@pytest.mark.parametrize("ranks", [1, 2, 8, 64])
def test_whole_diffs_of_equal_runs_have_no_lines(ranks: int) -> None:
    """Unsteady ones: steps vary by a third on all ranks at once, which also makes a few of them slow."""
    dice, job = Random(ranks), Job(ranks, by_step=0.3, by_rank=0.1, by_cell=0.05)
    found = [diff_sides(simulate_run(job, dice), simulate_run(job, dice)) for _ in range(12)]
    assert sum(each.significant for each in found) == 0


@pytest.mark.parametrize("ranks", [1, 8])
def test_a_change_is_still_found(ranks: int) -> None:
    dice, job = Random(ranks), Job(ranks, by_step=0.01)
    assert diff_sides(simulate_run(job, dice), simulate_run(job, dice, longer=1.3)).step.significant


@pytest.mark.thorough
def test_of_512_ranks_as_few() -> None:
    dice = Random(512)
    assert sum(_differ(Job(512), dice) for _ in range(40)) <= 0.125 * 40  # 8 % of so few is 3, by 5 % 2 ± 1.4
