"""Reports of small parallel jobs, from files: what is found first, and whose speed-up is promised."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from stepscope.reports.build import report
from stepscope.reports.report import Report
from tests.builders.jobs.parallel_job import Job, step_us, write

SMALL = Job(tensor=1, stages=2, replicas=4, micro_batches=4, steps=4)
SECTIONS = ("findings", "collectives")


def report_of(job: Job, folder: Path) -> Report:
    return report(write(job, folder), sections=SECTIONS)


def slow_rank(factor: float) -> Job:
    return Job(
        tensor=1, stages=2, replicas=4, micro_batches=4, steps=4,
        device=lambda rank, _: factor if rank == 5 else 1.0,
    )  # fmt: skip


def test_a_slow_rank_of_a_stage_costs_what_the_job_would_gain(tmp_path: Path) -> None:
    made = report_of(slow_rank(1.3), tmp_path)
    first = made.findings[0]
    assert (first.code, first.evidence["rank"], first.evidence["cause"]) == ("straggler", 5, "compute")
    assert first.speedup.mid == pytest.approx(step_us(slow_rank(1.3)) / step_us(SMALL), rel=0.02)
    assert made.job is not None and made.job.sizes == {"data": 4, "pipeline": 2}
    assert [role.ranks for role in made.job.roles] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_a_healthy_pipeline_is_calm(tmp_path: Path) -> None:
    made = report_of(SMALL, tmp_path)
    assert made.job is not None and made.job.is_replayed and made.job.causes == []
    assert made.job.bubble is not None and made.job.bubble.by_schedule == pytest.approx(1 / 5, abs=0.04)
    assert made.collectives.straggler is None
    assert {finding.code for finding in made.findings} <= {"pipeline-bubble", "exposed-collective"}


def test_a_heavy_stage_is_no_slow_rank(tmp_path: Path) -> None:
    job = Job(
        tensor=1, stages=2, replicas=4, micro_batches=4, steps=4,
        device=lambda rank, _: 1.4 if rank >= 4 else 1.0,
    )  # fmt: skip
    made = report_of(job, tmp_path)
    assert made.findings[0].code == "stage-imbalance" and made.findings[0].evidence["stage"] == 1
    assert "straggler" not in {finding.code for finding in made.findings}


def test_findings_of_one_rank_promise_what_the_job_gains(tmp_path: Path) -> None:
    """The last stage loads data while it has nothing to do anyway."""
    job = Job(
        tensor=1,
        stages=4,
        replicas=1,
        micro_batches=4,
        steps=4,
        loader=lambda rank, _: 40.0 if rank == 3 else 1.0,
    )
    made = report_of(job, tmp_path)
    found = next((finding for finding in made.findings if finding.code == "input-bound"), None)
    assert found is not None and found.evidence["rank_speedup"] > 1.04
    assert found.speedup.mid < 1.01


def replicas(device: Callable[[int, int], float], tensor: int = 1, steps: int = 6) -> Job:
    return Job(tensor=tensor, stages=1, replicas=8 // tensor, micro_batches=2, steps=steps, device=device)


def test_a_machine_that_slows_down_is_named_as_a_whole(tmp_path: Path) -> None:
    """Without stages, arrivals alone name those two of its ranks that happen to come last."""
    made = report_of(
        replicas(lambda rank, step: 1.5 + rank / 100 if 4 <= rank < 7 and step >= 3 else 1.0, tensor=2),
        tmp_path,
    )
    assert made.collectives.straggler is not None
    assert (made.collectives.straggler.ranks, made.collectives.straggler.since) == ([4, 5, 6], 3)


def test_ranks_that_pause_in_turn_are_no_stragglers(tmp_path: Path) -> None:
    paused = {(2, 1), (5, 3)}
    made = report_of(replicas(lambda rank, step: 2.0 if (rank, step) in paused else 1.0), tmp_path)
    assert made.findings[0].code == "rank-jitter"
    assert made.collectives.straggler is None


def test_one_rank_that_pauses_again_and_again_is_named(tmp_path: Path) -> None:
    made = report_of(replicas(lambda rank, step: 2.0 if rank == 5 and step % 2 else 1.0, steps=8), tmp_path)
    first = made.findings[0]
    assert (first.code, first.evidence["rank"], first.evidence["kind"]) == ("straggler", 5, "sometimes")
