"""Where the job cannot be replayed, the rank that gains least and waits least bounds what all gain."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.reports.model.ranks import Collectives
from stepscope.reports.sections.findings import OfRank
from stepscope.reports.slowest_rank import bounded_by_slowest
from tests.reports.corpus import CORPUS, of


def finding(low: float, mid: float, high: float, code: str = "device-sync") -> Finding:
    gain = Interval(1 / (1 - low), 1 / (1 - mid), 1 / (1 - high))
    return Finding(
        code=code, class_="time", title="", detail="", saves_ns_per_step=round(1000 * mid), speedup=gain
    )


def waiting(rank: int, share: float, **other: Any) -> dict[str, Any]:
    """What is told of a rank that spends this share of its step waiting in its only call."""
    usual = {"calls": 1, "matched": 1, "total_ns": 100, "wait_ns": 100}
    return {"rank": rank, "exposed_share": share, **usual, **other}


def bounded(*rows: dict[str, Any], found: tuple[Finding | None, ...], code: str = "device-sync") -> Finding:
    ranks = [OfRank(rank, [each] if each else [], None) for rank, each in enumerate(found)]
    made = bounded_by_slowest([finding(0.3, 0.4, 0.5, code)], ranks, Collectives(ranks=list(rows)))
    return made[0]


def saved(found: Finding) -> list[float]:
    gain = found.speedup
    return [round(1 - 1 / each, 2) for each in (gain.low, gain.mid, gain.high)]


HAS = finding(0.3, 0.4, 0.5)


def test_a_rank_without_the_finding_saves_only_its_waits() -> None:
    left = bounded(waiting(0, 0.4), waiting(1, 0.1), found=(HAS, None))
    assert saved(left) == [0.06, 0.1, 0.15]
    assert left.saves_ns_per_step == pytest.approx(100, abs=1)
    assert "rank 1 gains little by it" in left.detail
    assert left.evidence["rank_speedup"] == pytest.approx(1 / 0.6)


def test_a_transfer_is_no_wait() -> None:
    left = bounded(waiting(0, 0.4), waiting(1, 0.4, wait_ns=25), found=(HAS, None))
    assert saved(left)[1] == 0.1


def test_a_rank_that_waits_for_the_others_leaves_the_promise_as_it_is() -> None:
    left = bounded(waiting(0, 0.0), waiting(1, 0.5), found=(HAS, None))
    assert saved(left) == [0.3, 0.4, 0.5] and not left.detail


def test_a_rank_that_has_the_finding_saves_by_both() -> None:
    left = bounded(waiting(0, 0.0), waiting(1, 0.15), found=(HAS, finding(0.05, 0.1, 0.2)))
    assert saved(left) == [0.14, 0.25, 0.35]


@pytest.mark.parametrize(
    "row", [waiting(1, 0.0, matched=0), {"rank": 1, "exposed_share": 0.0, "calls": 0, "total_ns": 0}]
)
def test_a_rank_that_meets_no_other_bounds_nothing(row: dict[str, Any]) -> None:
    assert saved(bounded(waiting(0, 0.0), row, found=(HAS, None))) == [0.3, 0.4, 0.5]


def test_what_was_not_compared_may_all_be_waiting() -> None:
    left = bounded(waiting(0, 0.0), waiting(1, 0.5, calls=2, wait_ns=0), found=(HAS, None))
    assert saved(left) == [0.3, 0.4, 0.5]


def test_communication_itself_is_bounded_elsewhere() -> None:
    left = bounded(waiting(0, 0.4), waiting(1, 0.0), found=(HAS, None), code="exposed-collective")
    assert saved(left) == [0.3, 0.4, 0.5]


@pytest.mark.corpus
@pytest.mark.skipif(CORPUS is None, reason="set STEPSCOPE_CORPUS to the folder with real recordings")
def test_seven_of_eight_ranks_wait_in_a_step_whose_pace_the_eighth_sets() -> None:
    """It waits an eighth of its step at most, and the others promise 1.3 and more."""
    waits = next(each for each in of("public/dlrm_8ranks").findings if each.code == "device-sync")
    assert 7 not in waits.evidence["ranks"] and waits.evidence["rank_speedup"] > 1.25
    assert waits.speedup.mid < 1.2
