"""The findings of all ranks, and what a single one of them cannot show."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.rules.copies.exposed_collective import RULE
from stepscope.analysis.options import Options
from stepscope.reports.model.report import BreakdownRow, Coverage, Gap, Profile, Report
from stepscope.reports.sections.findings import OfRank, joined
from stepscope.reports.wording.unknown import what_is_unknown


def of_rank(rank: int, world: int, code: str = RULE.code) -> OfRank:
    found = Finding(code=code, class_="time", title="", detail="1.00 ms is communication.", fix="", page="")
    return OfRank(rank, [found], None, world=world)


def detail_of(*ranks: OfRank) -> str:
    return str(joined(ranks, Options())["findings"][0].detail)


def test_one_rank_cannot_tell_waiting_from_transfer() -> None:
    assert "one of 8 ranks" in detail_of(of_rank(0, 8))
    assert "files of all ranks" in detail_of(of_rank(0, 8))


def test_all_that_is_there_is_enough() -> None:
    assert "cannot be distinguished" not in detail_of(of_rank(0, 1))
    assert "cannot be distinguished" not in detail_of(of_rank(0, 2), of_rank(1, 2))
    assert "cannot be distinguished" not in detail_of(of_rank(0, 8, "launch-bound"))


@pytest.mark.parametrize(
    ("part", "ranks", "what"),
    [("host_collective", [0], "waiting apart from transfer"), ("compute", [0], "other ranks"), ("collective", [0, 1], "other ranks")],
)  # fmt: skip
def test_what_is_not_known_without_the_other_ranks(part: str, ranks: list[int], what: str) -> None:
    report = Report(
        profile=Profile(path="x", ranks=ranks, world_size=4),
        breakdown=[BreakdownRow(part=part, ns=500, share=0.5)],
        coverage=Coverage(
            gaps=[Gap(what="ranks", share=0.75, reason="1 of 4 ranks is in this report.", fix="x")]
        ),
    )
    assert what_is_unknown(report) == [f"{what} (1 of 4 ranks is in this report)"]
