"""No report contradicts itself: over the small recorded profiles of all formats, and over steps made to tempt it."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.reports.build import report
from stepscope.reports.model.report import Finding, Interval, Profile, Report, StepRow, Steps, Straggler
from stepscope.reports.ranks.straggler_finding import with_straggler
from tests.builders.documents import chrome, event
from tests.builders.files import write
from tests.reports.promises import broken

FIXTURES = Path(__file__).parents[1] / "fixtures"
SAMPLE = Path(__file__).parents[2] / "src/stepscope/samples/tiny_gpt.pt.trace.json.gz"
PROFILES = [
    SAMPLE,
    *sorted(FIXTURES.glob("kineto/*.gz")),
    *sorted(FIXTURES.glob("capture_gpu/*")),
    *(FIXTURES / name for name in ("jax/plugins", "tensorflow/plugins", "tf_events", "agreement/torch")),
    FIXTURES / "doctor/torch_killed",
]


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.name)
def test_no_report_contradicts_itself(path: Path) -> None:
    assert not broken(report(path, sections=["findings", "breakdown", "input", "collectives"]))


def finding(code: str, share: float, saves: int) -> Finding:
    """With the speed-up that follows, of steps of 1,000 ns."""
    speedup = round(1000 / (1000 - saves), 4)
    return Finding(
        code=code,
        class_="time",
        title=code,
        detail="",
        share=share,
        saves_ns_per_step=saves,
        speedup=Interval(speedup, speedup, speedup),
    )


@pytest.mark.parametrize("late", [10, 200, 390, 410, 999, 5000])
def test_what_is_left_of_communication_is_ranked_anew(late: int) -> None:
    """Without the wait for the straggler it may save less than what came after it."""
    found = [finding("exposed-collective", 0.45, 400), finding("launch-bound", 0.4, 300)]
    slow = Straggler(
        rank=1, ranks=[1], kind="always", always=True, late_ns=4 * late, late_ns_per_step=late, share=late / 1000,
        steps_late=4, steps=4, last=4, matched=4,
    )  # fmt: skip
    told = with_straggler(found, slow, 1000)
    assert not broken(_report(told))
    assert ("exposed-collective" in [each.code for each in told]) == (late < 450)


def _report(findings: list[Finding]) -> Report:
    row = StepRow(rank=0, device=0, step=1, start_ns=0, duration_ns=1000, parts={})
    steps = Steps(count=1, mean_ns=1000, critical_devices={"0": 0}, rows=[row])
    return Report(profile=Profile(path="", ranks=[0, 1]), findings=findings, steps=steps)


def test_a_program_without_a_framework_gets_no_advice_on_launches(tmp_path: Path) -> None:
    """Spans of a tool that nobody knows are its work; nothing is launched."""
    events = [event(None, f"job {i % 7}", 1000 * i, 800 + i % 11, tid=i % 3) for i in range(90)]
    path = write(tmp_path / "simple.trace.json", chrome(*events))
    found = report(path)
    assert not broken(found)
    assert {row.part for row in found.breakdown} <= {"host_compute", "unexplained"}
    assert not [each.code for each in found.findings if each.class_ == "time"]
    assert all("device" not in each.title.lower() for each in found.findings)
