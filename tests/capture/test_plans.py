"""Schedules, step times and who this worker is: nothing here records anything."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.capture.files.identity import identify
from stepscope.capture.process.step_times import KEPT, StepTimes
from stepscope.capture.schedule import NEVER, from_now, schedule

few = st.integers(0, 5)


def test_phases_of_a_schedule() -> None:
    plan = schedule(skip=2, warmup=1, active=2, repeat=2)
    assert [plan.phase(step)[0] for step in range(12)] == list("oowrroowrroo")
    assert [plan.window(step) for step in (0, 4, 5, 9)] == [0, 0, 1, 1]


@given(few, few, st.integers(1, 5), few, st.integers(0, 60))
def test_nothing_changes_before_the_next_change(
    skip: int, warmup: int, active: int, repeat: int, step: int
) -> None:
    plan = schedule(skip=skip, warmup=warmup, active=active, repeat=repeat)
    following = plan.next_change(step)
    assert following > step
    for other in range(step, min(following, step + 100)):
        assert (plan.phase(other), plan.window(other) if following != NEVER else 0) == (
            plan.phase(step),
            plan.window(step) if following != NEVER else 0,
        )


@pytest.mark.parametrize("wrong", [{"skip": -1}, {"active": 0}, {"repeat": -1}, {"warmup": -2}])
def test_schedules_that_make_no_sense(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="a schedule needs"):
        schedule(**wrong)


def test_without_a_schedule_recording_is_bounded() -> None:
    assert from_now().phase(0) == "record"
    assert from_now().phase(20) == "off"


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        ({"skip": 0, "repeat": 1}, True),
        ({"skip": 2, "repeat": 0}, False),
        ({"skip": 100, "repeat": 0}, True),
        ({"skip": 5, "repeat": 3}, False),
    ],
)
def test_whether_windows_are_far_apart(plan: dict[str, int], expected: bool) -> None:
    """Between windows that follow each other closely nothing is let go."""
    assert schedule(**plan).leaves_room is expected


def test_step_times_around_a_window() -> None:
    times = StepTimes(0)
    for moment in (10, 20, 30):
        times.recent.append(moment)
    times.enter_warmup(3, 31)
    times.recent.append(50)
    times.enter_window(4, 52, was_warmup=True)
    times.recent.extend((70, 95))
    times.close_window(6)
    times.leave_window(1000)
    times.recent.extend((1010, 1020))
    assert times.rows(6) == {
        "before": {"first": 0, "durations_ns": [10, 10, 10]},
        "warmup": {"first": 3, "durations_ns": [19]},
        "inside": {"first": 4, "durations_ns": [18, 25]},
        "after": {"first": 6, "durations_ns": [10, 10]},
    }


def test_only_the_steps_nearest_to_the_window_are_kept() -> None:
    times = StepTimes(0)
    for moment in range(1, 1001):
        times.recent.append(moment)
    times.enter_window(1000, 1000, was_warmup=False)
    before = times.rows(0)["before"]
    assert (before["first"], len(before["durations_ns"])) == (1000 - KEPT, KEPT)


TF_CLUSTER = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]}


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, (None, None, None)),
        ({"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1"}, (3, 8, "environment")),
        ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4"}, (2, 4, "Open MPI")),
        ({"PMI_RANK": "1", "PMI_SIZE": "2"}, (1, 2, "MPI")),
        ({"SLURM_PROCID": "5", "SLURM_NTASKS": "16"}, (5, 16, "SLURM")),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "1"}, (None, None, None)),
        ({"RANK": "1", "WORLD_SIZE": "2", "SLURM_PROCID": "0", "SLURM_NTASKS": "9"}, (1, 2, "environment")),
        ({"RANK": "-1", "WORLD_SIZE": "x"}, (None, None, None)),
        ({"TF_CONFIG": json.dumps({"cluster": TF_CLUSTER, "task": {"type": "worker", "index": 1}})}, (2, 3, "TF_CONFIG")),
        ({"TF_CONFIG": json.dumps({"cluster": TF_CLUSTER, "task": {"type": "ps", "index": 0}})}, (None, None, None)),
        ({"TF_CONFIG": "{broken"}, (None, None, None)),
    ],
)  # fmt: skip
def test_who_this_is(environment: dict[str, str], expected: tuple[Any, ...]) -> None:
    found = identify(environment)
    assert (found.rank, found.world_size, found.source) == expected


def test_workers_of_a_job_share_its_name_and_other_jobs_do_not() -> None:
    common = {"WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1"}
    first, second = (identify(common | {"RANK": rank}).job for rank in "01")
    other = identify(common | {"RANK": "0", "MASTER_PORT": "2"}).job
    assert first == second != other
    assert identify({}).job == ""
