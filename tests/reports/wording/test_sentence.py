"""The sentence that opens every rendering."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.finding import LATE_RUNTIME, Finding, Interval
from stepscope.reports.model.report import (
    BreakdownRow,
    CopyRow,
    Device,
    NamedTime,
    Problem,
    Profile,
    Report,
    Roofline,
    RooflineRow,
    Steps,
    Unprofiled,
)
from stepscope.reports.wording.basis import sentence
from stepscope.reports.wording.sentence import advice, opening, write_sentence

MS = 1_000_000
INPUT = Finding(
    code="input-bound",
    class_="time",
    title="The device waits for data",
    detail="",
    share=0.8,
    saves_ns_per_step=8 * MS,
    speedup=Interval(4.0, 5.0, 6.0),
    fix="Load in worker processes: DataLoader(num_workers=8). More.",
)
ERROR = Problem(
    code="no-device-events", severity="error", title="Nothing of the device was recorded", detail=""
)


def report(parts: dict[str, float], *findings: Finding, mfu: float | None = 0.25) -> Report:
    """Steps of 10 ms with these shares."""
    found = Report(
        profile=Profile(path="job"),
        steps=Steps(source="marker", count=4, mean_ns=10 * MS, basis_ns=10 * MS),
        breakdown=[_row(part, share) for part, share in parts.items()],
        findings=list(findings),
        device=Device(busy_share=0.2, mfu=mfu),
        roofline=Roofline(rows=[_class("matmul", 0.7), _class("elementwise", 0.2)]),
    )
    found.steps.sentence = sentence(found.steps)
    return found


def _row(part: str, share: float) -> BreakdownRow:
    ns = round(share * 40 * MS)
    return BreakdownRow(part=part, ns=ns, share=share, names=[NamedTime(name="Conv2D", ns=ns // 2)])


def _class(name: str, share: float) -> RooflineRow:
    return RooflineRow(class_=name, kernels=1, time_ns=MS, share=share)


def test_the_first_finding_is_the_verdict() -> None:
    assert write_sentence(report({"compute": 0.2, "input": 0.8}, INPUT)) == (
        "The device waits for data. A step takes 10.0 ms as recorded (mean of 4 steps; not timed without the profiler). "
        "The device is busy 20.0 % of the time (MFU 25.0 %) and input takes 80.0 %. "
        "Load in worker processes: speed-up 4.0–6.0× (most likely 5.0×)."
    )


def test_an_unprofiled_step() -> None:
    found = report({"compute": 0.2, "input": 0.8}, INPUT)
    found.steps.unprofiled = Unprofiled(mean_ns=9 * MS, low_ns=8 * MS, high_ns=11 * MS, count=40)
    found.steps.basis_ns = 9 * MS
    assert sentence(found.steps) == (
        "A step takes 9.00 ms without the profiler (mean of 40 steps, 8.00 ms to 11.0 ms; 10.0 ms while recorded)."
    )


@pytest.mark.parametrize(
    ("estimated", "inflation", "source", "said"),
    [
        (6 * MS, 1.67, "estimated", "without the profiler about 6.00 ms, estimated"),
        (None, 1.67, "estimated", "not timed without the profiler"),  # where no promise rests on the replay
        (9_900_000, 1.01, "estimated", "not timed without the profiler"),
        (None, 2.0, "measured", "without the profiler about 5.00 ms, estimated"),  # of an older capture
    ],
)
def test_what_the_profiler_adds_and_the_sentence_agree(
    estimated: int | None, inflation: float, source: str, said: str
) -> None:
    steps = Steps(
        source="marker", count=4, mean_ns=10 * MS, basis_ns=10 * MS, estimated_ns=estimated,
        inflation=inflation, inflation_source=source,
    )  # fmt: skip
    assert sentence(steps) == f"A step takes 10.0 ms as recorded (mean of 4 steps; {said})."


def test_nothing_but_kernels() -> None:
    said = write_sentence(report({"compute": 0.97, "dispatch": 0.03}))
    assert said.startswith("Nothing outside the kernels holds the step up. ")
    assert said.endswith(
        "busy 97.0 % of the time (MFU 25.0 %); kernel time is 70.0 % matmul, 20.0 % elementwise."
    )
    assert "MFU unknown" in write_sentence(report({"compute": 1.0}, mfu=None))


def test_kernels_that_can_be_improved() -> None:
    said = write_sentence(report({"compute": 0.97, "dispatch": 0.03}, INPUT))
    assert ", and nothing outside the kernels holds it up; kernel time is 70.0 % matmul" in said


def test_a_job_on_the_cpu() -> None:
    said = write_sentence(report({"host_compute": 0.97, "python": 0.03}, mfu=None))
    assert said.startswith("Nothing outside the ops holds the step up. ")
    assert said.endswith("The CPU computes 97.0 % of the time; op time is 50.0 % Conv2D.")


def test_a_job_whose_device_was_not_recorded_is_no_job_on_the_cpu() -> None:
    found = report({"host_compute": 0.8, "dispatch": 0.2})
    found.problems = [ERROR]
    said = write_sentence(found)
    assert said.startswith("Nothing of the device was recorded. ")
    assert "Work of the device is missing from the recording" in said and "CPU computes" not in said


def test_a_recording_of_captures_says_so_and_blames_nobody() -> None:
    found = report({"compute": 0.01, "dispatch": 0.99})
    found.problems = [
        Problem(
            code="graph-capture", severity="warning", title="Graphs are captured", detail="", cause="Once."
        )
    ]
    assert write_sentence(found) == "Graphs are captured. Once."


def test_an_idle_part_without_a_finding() -> None:
    said = write_sentence(report({"compute": 0.1, "unexplained": 0.9}))
    assert said.startswith("The profile does not show what happens most of the time. ")
    assert "no event explains 90.0 %." in said
    late = report({"compute": 0.1, "device_gap": 0.9})
    assert "device had not begun it yet. " in write_sentence(late)
    late.breakdown[1].names = [NamedTime(name="hipMemcpyWithStream", ns=late.breakdown[1].ns, place="during")]
    assert "had not begun it yet while the host was in hipMemcpyWithStream. " in write_sentence(late)


def test_a_small_finding_beside_a_large_idle_part_is_not_the_verdict() -> None:
    small = Finding(code="x", class_="time", title="A trifle", detail="", share=0.02, saves_ns_per_step=MS, speedup=Interval(1.0, 1.02, 1.03))  # fmt: skip
    said = write_sentence(report({"compute": 0.1, "dispatch": 0.9}, small))
    assert said.startswith("The framework prepares and launches work")
    assert said.endswith("A trifle: speed-up 1.00–1.03× (most likely 1.02×).")


def test_what_the_runtime_does_after_the_device_is_no_wait_of_the_host() -> None:
    late = Finding(code="device-sync", class_="advice", title=LATE_RUNTIME, detail="", share=0.6)
    said = write_sentence(report({"compute": 0.1, "sync": 0.9}, late))
    assert said.startswith("The runtime goes on long after the device is done. ")
    other = Finding(code="device-sync", class_="advice", title="Advice", detail="", share=0.6)
    assert write_sentence(report({"compute": 0.1, "sync": 0.9}, other)).startswith("The host waited for")


def test_an_error_comes_before_what_cannot_be_known() -> None:
    found = report({"input": 0.9, "python": 0.1})
    found.problems = [ERROR]
    assert write_sentence(found).startswith("Nothing of the device was recorded. ")
    assert write_sentence(Report(profile=Profile(path="x"), problems=[ERROR])).startswith(
        "Nothing of the device"
    )
    assert "no work that could be accounted for" in write_sentence(Report(profile=Profile(path="x")))


def test_no_steps() -> None:
    found = report({"compute": 0.1, "unexplained": 0.9})
    found.steps.source = "whole"
    assert sentence(found.steps) == "No steps were found, so all figures are of the whole recording, 10.0 ms."


def test_a_report_without_these_sections_opens_with_its_steps() -> None:
    found = report({"compute": 1.0})
    assert opening(found) == found.steps.sentence


@pytest.mark.parametrize(
    ("fix", "head"),
    [
        ("Load in worker processes: DataLoader(…).", "Load in worker processes"),
        ("Overlap communication (DDP does).", "Overlap communication"),
        ("Use a fused kernel.", "Use a fused kernel"),
        ("Do this; then that.", "Do this"),
        ("", ""),
        ("x" * 200, ""),
    ],
)
def test_the_head_of_a_fix(fix: str, head: str) -> None:
    assert advice(fix) == head


def _with_copies(parts: dict[str, float], *findings: Finding, **exposed: int) -> Report:
    found = report(parts, *findings)
    found.device.copies = [
        CopyRow(direction=way, calls=1, total_ns=ns + 5, exposed_ns=ns) for way, ns in exposed.items()
    ]
    return found


def test_copies_that_take_longest_are_the_verdict_with_their_direction() -> None:
    busy = {"compute": 0.02, "copy": 0.97, "device_gap": 0.01}
    said = write_sentence(_with_copies(busy, HtoD=97))
    assert said.startswith(
        "The longest part of the step is copies from the host to the device, and nothing hides it. "
    )
    assert said.endswith(
        "busy 99.0 % of the time (MFU 25.0 %), 97.0 % with nothing but copies from the host to the device."
    )
    both = write_sentence(_with_copies(busy, HtoD=30, DtoH=67))
    assert "is copies, mostly from the device to the host, and" in both


def test_copies_that_take_longest_are_named_beside_another_verdict() -> None:
    said = write_sentence(_with_copies({"copy": 0.5, "compute": 0.1, "input": 0.4}, INPUT, DtoH=5))
    assert said.startswith("The device waits for data. ")
    assert ", 50.0 % with nothing but copies from the device to the host and input takes 40.0 %." in said


def test_communication_that_takes_longest() -> None:
    said = write_sentence(report({"collective": 0.6, "compute": 0.39, "dispatch": 0.01}))
    assert said.startswith("The longest part of the step is communication, and nothing hides it. ")


def test_copies_behind_computation_are_not_named() -> None:
    said = write_sentence(_with_copies({"compute": 0.6, "copy": 0.38, "dispatch": 0.02}, HtoD=38))
    assert said.startswith("Nothing outside the kernels holds the step up. ") and "copies" not in said
