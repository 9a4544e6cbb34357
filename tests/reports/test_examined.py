"""Which of many ranks are examined in full, and who shares their findings."""

from __future__ import annotations

from collections.abc import Mapping

from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.options import Options
from stepscope.registers.policy.ranks import EXAMINED_RANKS
from stepscope.reports.examined import add_examined, choose_examined, like_whom
from stepscope.reports.model.job import Job, JobCause, Role
from stepscope.reports.model.report import StepRow
from stepscope.reports.sections.findings import OfRank
from stepscope.reports.sections.findings import joined as joined_findings
from stepscope.reports.sections.steps import RankSteps

MANY = 40


def steps_of(rank: int, parts: Mapping[str, int], peak: int = 0) -> RankSteps:
    rows = [
        StepRow(
            rank=rank,
            device=0,
            step=step,
            start_ns=0,
            duration_ns=1000,
            parts={"compute": 1000 - sum(parts.values()), **parts},
        )
        for step in range(3)
    ]
    return RankSteps("annotation", "step", 0, rows, peak_bytes=peak)


def like(unusual: Mapping[int, Mapping[str, int]], named: list[int] | None = None) -> dict[int, int]:
    ranks = list(range(MANY))
    return like_whom(ranks, [steps_of(rank, unusual.get(rank, {})) for rank in ranks], named or [])


def test_one_of_equal_ranks() -> None:
    assert set(like({}).values()) == {0}


def test_ranks_whose_accounts_differ_by_a_finding() -> None:
    found = like({5: {"input": 200}, 6: {"input": 210}, 9: {"input": 20}})
    assert set(found.values()) == {0, 6}
    assert found[5] == 6
    assert found[9] == 0


def test_no_more_than_are_examined() -> None:
    found = like({rank: {"input": 20 * rank} for rank in range(MANY)}, [17])
    assert len(set(found.values())) == EXAMINED_RANKS
    assert {0, 17, MANY - 1} <= set(found.values())
    assert found[17] == 17
    assert found[MANY - 2] == MANY - 1


def test_memory_is_a_difference() -> None:
    found = like_whom([0, 1, 2], [steps_of(rank, {}, peak=100 if rank == 2 else 80) for rank in range(3)])
    assert found == {0: 0, 1: 0, 2: 2}


def test_a_rank_without_steps_is_examined() -> None:
    assert like_whom([0, 1, 2], [steps_of(0, {}), steps_of(1, {}), RankSteps("none", None, None, [])])[2] == 2
    assert like_whom([3], []) == {3: 3}


def test_what_the_comparison_names_and_each_stage() -> None:
    job = Job(
        roles=[Role(stage=0, ranks=[0, 1]), Role(stage=1, ranks=[2, 3])],
        causes=[JobCause(kind="rank", ranks=[1])],
    )
    found = choose_examined(range(4), [steps_of(rank, {}) for rank in range(4)], {"job": job})
    assert set(found.values()) == {0, 1, 2}


def test_others_share_findings_and_the_examined_one_is_quoted() -> None:
    found: dict[str, list[object]] = {"steps": [steps_of(rank, {}) for rank in range(3)]}
    mine = Finding(
        code="input-bound", class_="time", title="t", detail="The input is late.", saves_ns_per_step=5
    )
    add_examined(found, {"findings": [OfRank(2, [mine], None)], "ops": [7]}, {0: 2, 1: 1, 2: 2})
    assert found["ops"] == [7]
    shared = [each for each in found["findings"] if isinstance(each, OfRank)]
    assert [each.rank for each in shared] == [2, 0]
    told = joined_findings(shared, Options())["findings"][0]
    assert told.detail == "On rank 2: the input is late. Also on rank 0."
