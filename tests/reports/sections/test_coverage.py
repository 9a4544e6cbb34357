"""What is covered and what is missing are together all there is, also over ranks that differ."""

from __future__ import annotations

from stepscope.analysis.capture_quality.coverage import Coverage
from stepscope.analysis.options import Options
from stepscope.reports.model.report import Coverage as Joined
from stepscope.reports.sections.coverage import RankCoverage, joined


def _rank(stacks: float | None) -> RankCoverage:
    missing: list[dict[str, object]] = []
    if stacks is not None and stacks < 1:
        missing = [{"what": "stacks", "share": 1 - stacks, "reason": "none"}]
    return RankCoverage(Coverage(1.0, 1.0, 1.0, 1.0, stacks, 1.0, missing), None)


def _joined(*stacks: float | None) -> Joined:
    found = joined([_rank(each) for each in stacks], Options())["coverage"]
    assert isinstance(found, Joined)
    return found


def test_shares_and_gaps_add_up() -> None:
    found = _joined(0.2, 0.6)
    assert (found.stacks, [gap.share for gap in found.gaps]) == (0.4, [0.6])


def test_a_rank_that_lacks_nothing_counts() -> None:
    found = _joined(1.0, 0.5)
    assert (found.stacks, [gap.share for gap in found.gaps]) == (0.75, [0.25])


def test_a_rank_that_cannot_tell_does_not() -> None:
    found = _joined(None, 0.5)
    assert (found.stacks, [gap.share for gap in found.gaps]) == (0.5, [0.5])
