"""What a report says of small simulated jobs, one for each kind of trouble."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import msgspec
import pytest

from benchmarks.ranks.physics.case import Case
from benchmarks.ranks.physics.job import Job
from benchmarks.ranks.physics.layout import Layout
from benchmarks.ranks.physics.run import simulate
from benchmarks.ranks.physics.score import Verdict, said_by
from benchmarks.ranks.physics.suspects import suspects
from benchmarks.ranks.physics.trouble import DRAWS
from benchmarks.ranks.physics.work import Work
from benchmarks.ranks.physics.write import write_case
from stepscope.reports.build import report
from tests.sample import SOAKS

PLAIN = Job(
    seed=5, layout=Layout(tp=2, pp=2, dp=4, per_node=4), micro_batches=6, steps=5, sync=True, host_share=0.2, noise=0.005,
    lasting=0.002, queue=256, work=Work(hidden=4096, sequence=4096, batch=1, layers=1, tp=2, fine=False),
)  # fmt: skip
EXPERTS = replace(PLAIN, layout=replace(PLAIN.layout, ep=4))
SHORT = replace(PLAIN, micro_batches=8)
JOBS = {"imbalance": EXPERTS, "bubble": SHORT}
# Of which a few steps cost enough to be found.
SEEDS = {"slow-link": 3, "throttling": 2}
# All others the soak tries: of most, tests/reports/ranks/test_job.py and tests/ranks/job ask the same of simpler jobs.
TRIED = ("imbalance", "slow-link")


def case_of(kind: str) -> Case:
    job = JOBS.get(kind, PLAIN)
    healthy = simulate(job, job.conditions())
    trouble = DRAWS[kind](Random(SEEDS.get(kind, 1)), job, healthy.step_ns())
    fixed = simulate(*trouble.fixed) if kind == "heavy-stage" else healthy
    run = simulate(*trouble.broken)
    return Case(job.seed, trouble, run, run.step_ns(), fixed.step_ns())


def verdict_of(kind: str, folder: Path) -> Verdict:
    case = case_of(kind)
    write_case(case, folder)
    found = report(folder, sections=["findings"])
    return Verdict(kind, case.truth(), said_by(msgspec.to_builtins(found)))


@pytest.mark.thorough
@pytest.mark.parametrize("kind", sorted(DRAWS if SOAKS else TRIED))
def test_cause_and_ranks_are_named_first_and_the_cost_is_right(kind: str, tmp_path: Path) -> None:
    verdict = verdict_of(kind, tmp_path)
    assert verdict.first, [str(each) for each in verdict.said]
    assert verdict.ranks in (True, None), [str(each) for each in verdict.said]
    assert verdict.gain in (True, None), (verdict.cost_error, verdict.truth["gain"])


def test_a_card_is_told_apart_by_its_partners_in_the_pipeline_and_its_replicas() -> None:
    slow = replace(PLAIN.conditions(), nics={3: 0.3})
    assert suspects(PLAIN, slow) == (3,)


def test_where_every_ring_is_slow_no_recording_shows_it() -> None:
    job = replace(PLAIN, layout=Layout(tp=1, pp=1, dp=16, per_node=4))
    slow = replace(job.conditions(), pairs={(1, 2): 0.3})
    assert suspects(job, slow) == ()
