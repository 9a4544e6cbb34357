"""Small jobs with one planted cause: who is named, and what the replay says that the job would gain."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stepscope.ranks.job.answers import JobAnswers, answers
from tests.builders.jobs.parallel_job import Job, courses, step_us

SEEDS = range(3)


def asked(job: Job) -> JobAnswers:
    found = answers(courses(job))
    assert found is not None and found.is_faithful
    return found


def gain(found: JobAnswers) -> float:
    return found.replayed_ns / (found.replayed_ns - found.causes[0].saves_ns[1])


def test_the_unchanged_replay_is_the_job() -> None:
    job = Job(jitter=0.1)
    assert asked(job).replayed_ns == pytest.approx(1000 * step_us(job), rel=1e-3)


def test_roles_come_from_groups_and_partners() -> None:
    found = asked(Job(tensor=2, stages=4, replicas=2)).roles
    assert found.stage == {rank: rank // 4 for rank in range(16)}
    assert found.sizes() == {"tensor": 2, "data": 2, "pipeline": 4}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_healthy_pipeline_has_its_bubble_and_nothing_else(seed: int) -> None:
    found = asked(Job(seed=seed))
    assert found.causes == ()
    assert found.bubble is not None and found.bubble.micro_batches == 8
    assert found.bubble.even_share == pytest.approx(3 / (8 + 3), abs=0.03)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_slow_device_is_compared_with_its_stage(seed: int) -> None:
    job = Job(seed=seed, device=lambda rank, _: 1.2 if rank == 5 else 1.0)
    found = asked(job)
    assert [(cause.kind, cause.ranks, cause.since) for cause in found.causes] == [("rank", (5,), None)]
    assert gain(found) == pytest.approx(step_us(job) / step_us(Job(seed=seed)), rel=0.01)
    # What a slow rank adds is not the schedule's.
    assert found.bubble is not None and found.bubble.even_share == pytest.approx(0.27, abs=0.03)


def test_a_device_that_slows_down_has_a_beginning() -> None:
    found = asked(Job(steps=10, device=lambda rank, step: 1.3 if rank == 5 and step >= 6 else 1.0))
    assert [(cause.kind, cause.ranks, cause.since) for cause in found.causes] == [("rank", (5,), 6)]


@pytest.mark.parametrize("slow", ["loader", "host"])
def test_late_input_and_a_slow_host(slow: str) -> None:
    job = Job(micro_batches=4, **{slow: lambda rank, _: 100.0 if rank == 1 else 1.0})  # type: ignore[arg-type]
    found = asked(job)
    assert [(cause.kind, cause.ranks) for cause in found.causes] == [("rank", (1,))]
    longer = found.causes[0].facts["longer_ns"]
    assert longer["input_ns" if slow == "loader" else "host_ns"] > longer["compute_ns"]
    assert gain(found) == pytest.approx(step_us(job) / step_us(Job(micro_batches=4)), rel=0.02)


def test_ranks_of_one_machine_are_slow_together() -> None:
    job = Job(tensor=4, replicas=4, micro_batches=4, device=lambda rank, _: 1.4 if 8 <= rank < 12 else 1.0)
    found = asked(job)
    assert [(cause.kind, cause.ranks) for cause in found.causes] == [("rank", (8, 9, 10, 11))]


def test_slow_links_are_named_by_the_ranks_that_share_them() -> None:
    job = Job(link=lambda rank, _: 8.0 if rank in (4, 5) else 1.0)
    found = asked(job)
    assert [(cause.kind, cause.ranks) for cause in found.causes] == [("link", (4, 5))]
    assert found.causes[0].facts["ratio"] == pytest.approx(8, rel=0.05)
    assert gain(found) == pytest.approx(step_us(job) / step_us(Job()), rel=0.01)


def test_a_heavy_stage_and_what_even_stages_would_gain() -> None:
    heavy = Job(device=lambda rank, _: 1.3 if rank >= 12 else 1.0)
    even = Job(device=lambda rank, _: 1.075)
    found = asked(heavy)
    assert [(cause.kind, cause.facts["stage"]) for cause in found.causes] == [("stages", 3)]
    assert gain(found) == pytest.approx(step_us(heavy) / step_us(even), rel=0.01)
    assert found.bubble is not None and found.bubble.share > found.bubble.even_share + 0.05


def test_uneven_experts() -> None:
    job = Job(replicas=4, experts=lambda rank, _: 1.5 if rank == 5 else 1.0)
    found = asked(job)
    assert [(cause.kind, cause.ranks) for cause in found.causes] == [("experts", (5,))]
    assert gain(found) == pytest.approx(
        step_us(job) / step_us(replace(job, experts=lambda *_: 1.0)), rel=0.02
    )


def test_jitter_is_of_no_rank() -> None:
    found = asked(Job(jitter=0.3, steps=8))
    assert [cause.kind for cause in found.causes] == ["jitter"]


def test_a_job_without_stages() -> None:
    job = Job(tensor=1, stages=1, replicas=8, device=lambda rank, _: 1.3 if rank == 5 else 1.0)
    found = asked(job)
    assert found.roles.sizes() == {"data": 8} and found.bubble is None
    assert [(cause.kind, cause.ranks) for cause in found.causes] == [("rank", (5,))]


def test_ranks_that_never_meet_have_no_job() -> None:
    assert answers(courses(Job(tensor=1, stages=1, replicas=1))) is None
    assert answers([]) is None


def test_one_pause_makes_no_slow_rank() -> None:
    found = asked(Job(steps=6, device=lambda rank, step: 3.0 if (rank, step) == (5, 3) else 1.0))
    assert "rank" not in {cause.kind for cause in found.causes}


def test_half_of_a_stage_may_be_slow() -> None:
    found = asked(Job(tensor=2, stages=2, replicas=4, host=lambda rank, _: 60.0 if rank < 4 else 1.0))
    assert [(cause.kind, cause.ranks) for cause in found.causes] == [("rank", (0, 1, 2, 3))]


def test_transfers_are_what_is_left_of_communication_without_waiting() -> None:
    slow = Job(device=lambda rank, _: 1.5 if rank == 5 else 1.0)
    healthy, found = asked(Job()), asked(slow)
    assert healthy.transfers_ns is not None and found.transfers_ns is not None
    assert found.transfers_ns == pytest.approx(healthy.transfers_ns, rel=0.2)


def test_pauses_in_some_steps_are_jitter() -> None:
    """Steps without one gain nothing: the gain differs from step to step by its nature."""
    job = Job(steps=4, device=lambda rank, step: 2.0 if (rank, step) == (5, 1) else 1.0)
    found = asked(job)
    assert [cause.kind for cause in found.causes] == ["jitter"]
    assert gain(found) == pytest.approx(step_us(job) / step_us(Job(steps=4)), rel=0.02)


def test_a_device_that_is_slower_in_the_last_step_is_no_pause() -> None:
    """All parts of the step take longer; of a pause one does."""
    job = Job(steps=4, device=lambda rank, step: 1.5 if (rank, step) == (5, 3) else 1.0)
    found = asked(job)
    assert [(cause.kind, cause.ranks, cause.since) for cause in found.causes] == [("rank", (5,), 3)]
    assert gain(found) == pytest.approx(step_us(job) / step_us(Job(steps=4)), rel=0.02)


def test_only_what_the_schedule_explains_is_its_bubble() -> None:
    """Transfers between stages are waited for as well, and more micro-batches change nothing about them."""
    bubble = asked(Job(micro_batches=12, forward=60.0)).bubble
    assert bubble is not None and bubble.share > 0.25
    assert bubble.even_share == pytest.approx(3 / (12 + 3))


def test_of_two_replicas_the_one_that_sends_more_has_more_to_do() -> None:
    """Neither is the usual one, and in each step another one is late: sizes of messages show why."""
    longer = (1.3, 0.8, 1.1, 0.7, 1.2, 0.9)

    def batch(rank: int, step: int) -> float:
        return longer[step] if rank // 2 % 2 else 2 - longer[step]

    job = Job(batch=batch)
    found = asked(job)
    assert [cause.kind for cause in found.causes] == ["batches"]
    assert gain(found) == pytest.approx(step_us(job) / step_us(Job()), rel=0.03)


def test_equal_batches_are_not_uneven() -> None:
    job = Job(device=lambda rank, _: 1.2 if rank // 2 % 2 else 1.0)
    assert "batches" not in {cause.kind for cause in asked(job).causes}


def test_a_short_pause_of_a_long_part_is_no_noise() -> None:
    """A step without calls inside hardly varies: a pause of less than a tenth of it is one, and all of it can be saved."""
    shape = Job(tensor=1, stages=1, replicas=8, steps=5)
    job = replace(shape, device=lambda rank, step: 1.08 if rank == step else 1.0)
    found = asked(job)
    assert [cause.kind for cause in found.causes] == ["jitter"]
    assert gain(found) == pytest.approx(step_us(job) / step_us(shape), rel=0.01)
