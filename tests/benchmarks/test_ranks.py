"""Profiles of many ranks with a known truth, a few of those that `python -m benchmarks.ranks` makes by the hundred."""

from __future__ import annotations

from dataclasses import replace

import pytest

import stepscope
from benchmarks.ranks.discrete import model as discrete
from benchmarks.ranks.discrete.case import random_case as random_discrete_case
from benchmarks.ranks.score import CLOCK_ERROR_NS, score
from benchmarks.ranks.stretched.case import Case, random_case
from benchmarks.ranks.stretched.model import job_of
from stepscope.profiles.profile import Profile
from stepscope.reports.model.report import Report
from tests.sample import in_soak

pytestmark = pytest.mark.thorough

LATE = Case(
    seed=3, source="loader", ranks=8, steps=6, kind="always", rank=5, cause="input", late_share=0.2, group=4,
    missing=(2,), short={6: 1}, late_steps=tuple(range(6)), drift_ppm=50.0,
)  # fmt: skip


@pytest.mark.parametrize(
    ("seed", "kind", "ranks"),
    [
        (1, "always", 8),
        (5, "sometimes", 8),
        pytest.param(9, "data-dependent", 16, marks=in_soak),
        pytest.param(4, "healthy", 8, marks=in_soak),
    ],
)
def test_truth_is_found(seed: int, kind: str, ranks: int) -> None:
    found = score(job_of(random_case(seed, kind, ranks=ranks, steps=8)))
    assert found.right, found
    assert found.clock_error_ns < CLOCK_ERROR_NS
    assert found.bus_error is not None and found.bus_error < 0.001


@pytest.mark.parametrize("kind", ["always", pytest.param("healthy", marks=in_soak)])
def test_truth_of_a_discrete_event_simulation_is_found(kind: str) -> None:
    drawn = replace(random_discrete_case(3, kind), source="transformer", late_share=0.4, sync=True)
    found = score(discrete.job_of(drawn if kind == "healthy" else replace(drawn, cause="input")))
    assert found.right_cause, found
    assert found.clock_error_ns < CLOCK_ERROR_NS


def test_who_works_on_beside_a_collective_does_not_wait() -> None:
    """All-reduces run beside a step full of gaps; while others wait in them, they launch their kernels all the same."""
    late = replace(
        LATE,
        source="cells",
        kind="sometimes",
        cause="dispatch",
        late_share=0.5,
        late_steps=(1, 3, 5),
        layout="ddp",
    )
    job = job_of(late)
    found = score(job)
    assert (found.kind, found.ranks, found.cause) == ("sometimes", (5,), "dispatch")
    assert found.share == pytest.approx(job.cost, rel=0.2)


def report_of(case: Case) -> Report:
    """The report of a case, as a user gets it."""
    made = dict(job_of(case).read())
    profile = Profile("synthetic", list(made.values()), list(made))
    report: Report = stepscope.report(
        profile, sections=["steps", "breakdown", "collectives", "findings"], limit=0
    )
    return report


def test_the_report_tells_it() -> None:
    """Who, how often, why; the clocks; what is unequal; and the account of each rank still closes."""
    report = report_of(LATE)
    late = report.collectives.straggler
    assert late is not None and (late.rank, late.kind, late.cause) == (5, "always", "input")
    finding = next(finding for finding in report.findings if finding.code == "straggler")
    assert (
        "rank 5" in finding.title and "input takes" in finding.detail and finding.evidence["kind"] == "always"
    )
    clocks = report.collectives.clocks
    assert [clock.rank for clock in clocks] == [0, 1, 3, 4, 5, 6, 7] and all(
        clock.aligned for clock in clocks
    )
    assert max(abs(clock.offset_ns) for clock in clocks) > 1_000_000
    assert max(clock.residual_ns or 0 for clock in clocks) < CLOCK_ERROR_NS
    assert "unequal-collectives" in [problem.code for problem in report.problems]
    assert 5 in {
        wait.for_rank for wait in report.collectives.waits[:3]
    }  # and who waited for it in another group
    assert all(sum(row.parts.values()) == row.duration_ns for row in report.steps.rows)
    worst = report.collectives.worst[0]
    assert worst.last_rank == 5 and [arrival.rank for arrival in worst.arrivals][-1] == 5
    assert (
        worst.bus_gb_per_s is not None
        and worst.algorithm_gb_per_s is not None
        and worst.group_size is not None
    )
    n = worst.group_size
    assert worst.bus_gb_per_s == pytest.approx(worst.algorithm_gb_per_s * 2 * (n - 1) / n)


def test_nobody_is_named_where_all_is_well() -> None:
    report = report_of(
        replace(LATE, kind="healthy", rank=None, cause=None, missing=(), short={}, late_steps=())
    )
    assert report.collectives.straggler is None
    assert not {"straggler"} & {finding.code for finding in report.findings}
    assert not [problem for problem in report.problems if problem.code.startswith("unequal")]
