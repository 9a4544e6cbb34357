"""Waiting for ranks that arrive later is not hidden by overlap."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.reports.model.ranks import CollectiveRow, Collectives
from stepscope.reports.ranks.job_findings import with_job
from stepscope.reports.ranks.straggler_finding import with_waits


def finding(code: str, saves: int) -> Finding:
    """Of a step of 1,000 ns, half of which is communication."""
    gain = 1000 / (1000 - saves)
    return Finding(
        code=code,
        class_="time",
        title=code,
        detail="",
        share=0.5,
        saves_ns_per_step=saves,
        speedup=Interval(gain, gain, gain),
    )


@pytest.mark.parametrize(("waited", "saves", "first"), [(0, 375, True), (80, 75, False), (100, 0, False)])
def test_only_transfers_are_promised(waited: int, saves: int, first: bool) -> None:
    found = [finding("exposed-collective", 400), finding("input-bound", 300)]
    rows = [CollectiveRow(name="all_reduce", calls=1, total_ns=100, wait_ns=waited)]
    with_waits(found, Collectives(rows=rows), 1000)
    made = with_job(found, None, 1000)
    left = next(each for each in made if each.code == "exposed-collective")
    assert left.saves_ns_per_step == pytest.approx(saves, abs=1)
    assert left.speedup.high <= 1000 / 600
    assert left.speedup.mid == pytest.approx(1000 / (1000 - saves), abs=0.01)
    assert (made[0] is left) == first
    assert "waiting for other ranks" in left.detail


def test_a_message_whose_ranks_were_not_compared_keeps_its_promise() -> None:
    found = [finding("exposed-collective", 400)]
    with_waits(found, Collectives(rows=[CollectiveRow(name="all_reduce", calls=1, total_ns=100)]), 1000)
    assert with_job(found, None, 1000)[0].saves_ns_per_step == 400
