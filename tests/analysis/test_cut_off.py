"""Files that were cut off before the device's work promise nothing."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

import stepscope
from stepscope.reports.model.report import Report

FILE = Path(os.environ.get("STEPSCOPE_CORPUS", "/nonexistent"), "h200", "dqn_launch_bound.pt.trace.json.gz")

ONE_STEP = Path(os.environ.get("STEPSCOPE_CORPUS_2", "/nonexistent"), "mi300_qwen_chat.json.gz")

STEPS, OPS = 6, 40
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def events() -> list[dict[str, object]]:
    """Steps on a GPU in the order of a real file: what the host did, then launches and kernels in the order of time."""
    host, device = [], []
    for step in range(STEPS):
        start = 10_000 * step
        host.append(event(f"ProfilerStep#{step}", "user_annotation", 1, start, 9_900))
        host.append(event(LOADER, "user_annotation", 1, start + 8_000, 1_900))
        for op in range(OPS):
            at, number = start + 200 * op, step * OPS + op + 1
            host.append(event("aten::mm", "cpu_op", 1, at, 200))
            device.append(event("cudaLaunchKernel", "cuda_runtime", 1, at + 50, 20, correlation=number))
            device.append(
                event("gemm", "kernel", 7, at + 80, 40, correlation=number, device=0, stream=7) | {"pid": 0}
            )
    return [*host, *device]


def event(name: str, category: str, track: int, at: int, length: int, **args: int) -> dict[str, object]:
    """A complete event."""
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": 1,
        "tid": track,
        "ts": at,
        "dur": length,
        "args": args,
    }


def in_order_of_rocm() -> list[dict[str, object]]:
    """The same with all kernels before the calls that launch them."""
    order = {"kernel": 1, "cuda_runtime": 2}
    return sorted(events(), key=lambda each: order.get(str(each["cat"]), 0))


def cut(
    folder: Path, share: float, written: list[dict[str, object]] | None = None, names_devices: bool = True
) -> Report:
    """The report of the first part of the file."""
    devices = {"deviceProperties": [{"id": 0, "name": "NVIDIA H200"}]} if names_devices else {}
    document = {"schemaVersion": 1, **devices, "traceEvents": events() if written is None else written}
    text = json.dumps(document).encode()
    return judged(folder, text[: int(len(text) * share)])


def judged(folder: Path, content: bytes) -> Report:
    """The report of a file with this content."""
    path = folder / "cut.pt.trace.json"
    path.write_bytes(content)
    found: Report = stepscope.load(path, cache=False).report(sections=["findings", "problems", "steps"])
    return found


def promised(found: Report) -> list[str]:
    """The codes of findings with a speed-up."""
    return [each.code for each in found.findings if each.speedup.high > 1]


@pytest.mark.parametrize("share", [0.2, 0.3, 0.5, 0.7, 0.9])
def test_no_promise_from_a_file_that_was_cut_off_before_the_kernels(tmp_path: Path, share: float) -> None:
    found = cut(tmp_path, share)
    assert [each.code for each in found.findings if each.class_ == "time"] == []
    said = next(each for each in found.problems if each.code == "no-device-events")
    assert said.detail.startswith("The recording was cut off before the device's work of")


def test_a_whole_file_promises_something(tmp_path: Path) -> None:
    found = cut(tmp_path, 1.0)
    assert any(each.speedup.mid > 1 for each in found.findings)
    assert "without the profiler about" in found.steps.sentence
    assert "no-device-events" not in {each.code for each in found.problems}


def test_what_is_lost_behind_the_last_step_does_no_harm(tmp_path: Path) -> None:
    found = cut(tmp_path, 0.999)
    assert "truncated" in {each.code for each in found.problems}
    assert any(each.speedup.mid > 1 for each in found.findings)
    assert "not timed without the profiler" in found.steps.sentence
    assert found.steps.inflation is None


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7, 0.9])
@pytest.mark.parametrize("names_devices", [True, False])
def test_kernels_whose_launches_are_lost_promise_nothing(
    tmp_path: Path, share: float, names_devices: bool
) -> None:
    found = cut(tmp_path, share, in_order_of_rocm(), names_devices)
    assert promised(found) == []
    assert "no-device-events" in {each.code for each in found.problems}


def test_a_whole_file_in_another_order_promises_something(tmp_path: Path) -> None:
    assert promised(cut(tmp_path, 1.0, in_order_of_rocm(), names_devices=False))


def test_a_file_that_ends_before_any_launch_says_that_it_cannot_know_the_device(tmp_path: Path) -> None:
    found = cut(tmp_path, 0.2, names_devices=False)
    assert promised(found) == []
    said = next(each for each in found.problems if each.code == "no-device-events")
    assert (said.severity, said.detail) == (
        "warning",
        "The file ends before anything that a device did, which is written last: whether the job uses one is unknown.",
    )


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7, 0.8])
def test_a_single_step_whose_last_kernels_are_lost_promises_nothing(tmp_path: Path, share: float) -> None:
    written = [each for each in events() if float(str(each["ts"])) < 10_000]
    assert promised(cut(tmp_path, share, written)) == []


@pytest.mark.corpus
@pytest.mark.skipif(not FILE.exists(), reason="no corpus is set")
@pytest.mark.parametrize("share", [0.5, 0.85])
def test_half_of_a_real_recording_promises_nothing(tmp_path: Path, share: float) -> None:
    data = gzip.decompress(FILE.read_bytes())
    assert promised(judged(tmp_path, data[: int(len(data) * share)])) == []


@pytest.mark.corpus
@pytest.mark.skipif(not ONE_STEP.exists(), reason="no corpus is set")
@pytest.mark.parametrize("share", [0.3, 0.5, 0.7, 0.9])
@pytest.mark.parametrize("packed", [True, False])
def test_part_of_a_real_recording_of_one_step_promises_nothing(
    tmp_path: Path, share: float, packed: bool
) -> None:
    data = ONE_STEP.read_bytes() if packed else gzip.decompress(ONE_STEP.read_bytes())
    found = judged(tmp_path, data[: int(len(data) * share)])
    assert promised(found) == []
    assert "no-device-events" in {each.code for each in found.problems}
