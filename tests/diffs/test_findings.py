"""Findings of two runs are the same if they are about the same; figures say what they are of."""

from __future__ import annotations

from typing import Any

from stepscope.diffs.data.model import Line
from stepscope.diffs.figures import UTILISATION, other_peaks, plain_row
from stepscope.diffs.findings import findings

STEP_NS = 10_000_000


def report(*found: tuple[str, str, int]) -> dict[str, Any]:
    rows = [{"code": code, "title": title, "saves_ns_per_step": saves} for code, title, saves in found]
    return {"findings": rows, "steps": {"mean_ns": STEP_NS}}


def test_another_rank_is_another_finding() -> None:
    gained, lost, kept = findings(
        report(("straggler", "The other ranks wait for rank 0", 700_000)),
        report(("straggler", "The other ranks wait for rank 2", 5_000_000)),
        True,
    )
    assert [(each.title, each.significant) for each in gained] == [("The other ranks wait for rank 2", True)]
    assert [(each.title, each.significant) for each in lost] == [("The other ranks wait for rank 0", True)]
    assert kept == []


def test_what_grew_is_said_to() -> None:
    both = [report(("input-bound", "The device waits for data", saves)) for saves in (700_000, 5_000_000)]
    for a, b in (both, both[::-1]):
        gained, lost, kept = findings(a, b, True)
        assert gained == lost == []
        assert kept[0].significant
    assert not findings(both[0], both[0], True)[2][0].significant
    assert not findings(both[0], both[1], False)[2][0].significant


def test_utilisation_of_another_peak_says_so() -> None:
    rows = [plain_row(UTILISATION, 0.1, 0.4, "share"), plain_row("device busy", 0.5, 0.5, "share")]
    title = "matrix products run in fp32 instead of bf16"
    other_peaks(rows, [Line(title=title, kind="precision", difference=1.0)])
    assert [row.note for row in rows] == ["of another peak: fp32 instead of bf16", ""]
