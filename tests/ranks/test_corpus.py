"""Real profiles of several ranks: who is late, and that nothing is lost or counted twice when ranks are put together."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

import stepscope
from stepscope.reports.model.report import Report

CORPUS = os.environ.get("STEPSCOPE_CORPUS")
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(CORPUS is None, reason="wants the corpus of real traces"),
]
PROFILES = {"h200/ddp_rank*.pt.trace.json.gz": 1, "public/dlrm_8ranks": 7}
# Rank 1 has four times the batch, in all steps; one step tells no kind.
KINDS = {1: ("always", "work"), 7: ("unclear", "dispatch")}


@cache
def of(path: str, rank: int | None = None) -> Report:
    """The report of a profile, or of one of its ranks."""
    wanted = ["steps", "breakdown", "collectives", *(["findings"] if rank is None else [])]
    report: Report = stepscope.report(Path(CORPUS or "") / path, rank=rank, sections=wanted, limit=0)
    return report


@pytest.mark.parametrize(("path", "late"), PROFILES.items())
def test_who_is_late(path: str, late: int) -> None:
    found = of(path).collectives
    assert found.straggler is not None and found.straggler.rank == late
    assert found.straggler.last > found.straggler.matched / 2
    assert (found.straggler.kind, found.straggler.cause) == KINDS[late]
    finding = next(finding for finding in of(path).findings if finding.code == "straggler")
    assert finding.evidence["rank"] == late and finding.evidence["parts"]
    assert max(clock.residual_ns or 0 for clock in found.clocks) < 100_000


@pytest.mark.parametrize("path", PROFILES)
def test_sums_over_ranks_are_the_ranks_own(path: str) -> None:
    together = of(path)
    alone = [of(path, rank) for rank in together.profile.ranks]
    for row in together.collectives.rows:
        mine = [
            each
            for report in alone
            for each in report.collectives.rows
            if (each.name, each.group, each.dtype) == (row.name, row.group, row.dtype)
        ]
        assert row.calls == sum(each.calls for each in mine)
        assert row.total_ns == sum(each.total_ns for each in mine)
        assert row.exposed_ns == sum(each.exposed_ns or 0 for each in mine)
    for part in together.breakdown:
        assert part.ns == sum(
            each.ns for report in alone for each in report.breakdown if each.part == part.part
        )
    assert together.steps.rows == [row for report in alone for row in report.steps.rows]


@pytest.mark.parametrize("path", PROFILES)
def test_the_account_of_each_rank_closes(path: str) -> None:
    assert all(sum(row.parts.values()) == row.duration_ns for row in of(path).steps.rows)
