"""Findings of two runs are the same if they are about the same subject; figures say what they refer to."""

from __future__ import annotations

from stepscope.diffs.explain.lines import PrecisionChange
from stepscope.diffs.figures import UTILISATION, make_plain_row, note_other_peaks
from stepscope.diffs.findings import compare_findings
from stepscope.reports.model.report import Finding, Profile, Report, Steps

STEP_NS = 10_000_000


def report(*findings: tuple[str, str, int]) -> Report:
    rows = [
        Finding(code=code, class_="", title=title, detail="", saves_ns_per_step=saves)
        for code, title, saves in findings
    ]
    return Report(profile=Profile(path=""), steps=Steps(mean_ns=STEP_NS), findings=rows)


def test_another_rank_is_another_finding() -> None:
    gained, lost, kept = compare_findings(
        report(("straggler", "The other ranks wait for rank 0", 700_000)),
        report(("straggler", "The other ranks wait for rank 2", 5_000_000)),
        True,
    )
    assert [(each.title, each.significant) for each in gained] == [("The other ranks wait for rank 2", True)]
    assert [(each.title, each.significant) for each in lost] == [("The other ranks wait for rank 0", True)]
    assert kept == []


def test_findings_that_grow_are_significant() -> None:
    both = [report(("input-bound", "The device waits for data", saves)) for saves in (700_000, 5_000_000)]
    for a, b in (both, both[::-1]):
        gained, lost, kept = compare_findings(a, b, True)
        assert gained == lost == []
        assert kept[0].significant
    assert not compare_findings(both[0], both[0], True)[2][0].significant
    assert not compare_findings(both[0], both[1], False)[2][0].significant


def test_utilisation_of_another_peak_says_so() -> None:
    rows = [make_plain_row(UTILISATION, 0.1, 0.4, "share"), make_plain_row("device busy", 0.5, 0.5, "share")]
    note_other_peaks(rows, PrecisionChange("bf16", "fp32", 1.0, None, None))
    assert [row.note for row in rows] == ["", ""]  # both are measured by the peak of 16 bits
    note_other_peaks(rows, PrecisionChange("bf16", "fp8", 1.0, None, None))
    assert [row.note for row in rows] == ["of another peak: fp8 instead of bf16", ""]
