"""Figures of a section in words."""

from __future__ import annotations

import pytest

from stepscope.reports.model.critical_path import CriticalPath
from stepscope.reports.model.report import Finding, Interval, Profile, Report
from stepscope.reports.wording.facts import VERDICT, facts_of


@pytest.mark.parametrize(
    ("page", "device", "is_said"),
    [("kernels", 0.001, True), ("kernels", 0.2, False), ("trace", 0.001, False)],
)
def test_a_path_without_the_device_is_reconciled_with_findings_about_kernels(
    page: str, device: float, is_said: bool
) -> None:
    """Both are right: the profiler makes the host of the recorded steps slower than it is."""
    found = Finding(
        code="unfused-elementwise",
        class_="time",
        title="",
        detail="",
        speedup=Interval(1.1, 1.2, 1.4),
        page=page,
    )
    path = CriticalPath(source="replay", total_ns=1000, kinds={"host": 1 - device, "device": device})
    report = Report(profile=Profile(path=""), findings=[found], critical_path=path)
    said = [text for label, text in facts_of(report, "critical_path") if label == VERDICT]
    assert bool(said) == is_said
    assert all("the profiler slows the host" in text for text in said)
