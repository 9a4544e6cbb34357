"""Slow steps that come back among those that the capture timed without the profiler."""

from __future__ import annotations

import pytest

from stepscope.analysis.steps.rhythm import Rhythm, find_rhythm
from tests.builders.cases import case_of_text, gemm, steps

EPOCH = [10, 10, 10, 90]


def rhythm_of(before: object, after: object = None, **noted: object) -> Rhythm | None:
    timed = {"before": {"durations_ns": before}, "after": {"durations_ns": after}}
    return find_rhythm(case_of_text(steps(*gemm(0, 900)), capture={"steps": timed, **noted}).trace)


def test_the_period_the_usual_and_the_slow_steps() -> None:
    found = rhythm_of(EPOCH * 2, [10, *EPOCH * 2])
    assert found == Rhythm(4, 10, 90)
    assert found.mean_ns == 30
    assert found.usual_share == pytest.approx(1 / 3)


def test_a_first_step_that_warms_up_does_not_count() -> None:
    assert rhythm_of([5000, *EPOCH * 4]) == Rhythm(4, 10, 90)


@pytest.mark.parametrize(
    "before",
    [
        [10] * 12,
        [*EPOCH, *EPOCH],  # a single distance
        [90, 10, 10, 90, 10, 10, 10, 10, 90, 10, 90, 10, 10, 10],  # at any time
        "no list",
        ["no", "lengths"],
    ],
)
def test_else_there_is_none(before: object) -> None:
    assert rhythm_of(before) is None


def test_steps_that_hold_regions_have_none() -> None:
    assert rhythm_of(EPOCH * 4, regions={}) is None
