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


def cut(folder: Path, share: float) -> Report:
    """The report of the first part of the file."""
    document = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}],
        "traceEvents": events(),
    }
    text = json.dumps(document)
    path = folder / "cut.pt.trace.json"
    path.write_text(text[: int(len(text) * share)], "utf-8")
    found: Report = stepscope.load(path, cache=False).report(sections=["findings", "problems"])
    return found


@pytest.mark.parametrize("share", [0.2, 0.3, 0.5, 0.7, 0.9])
def test_no_promise_from_a_file_that_was_cut_off_before_the_kernels(tmp_path: Path, share: float) -> None:
    found = cut(tmp_path, share)
    assert [each.speedup.high for each in found.findings if each.speedup.high > 1] == []
    said = next(each for each in found.problems if each.code == "no-device-events")
    assert said.detail.startswith("The recording was cut off before the device's work of")


def test_a_whole_file_promises_something(tmp_path: Path) -> None:
    found = cut(tmp_path, 1.0)
    assert any(each.speedup.mid > 1 for each in found.findings)
    assert "no-device-events" not in {each.code for each in found.problems}


def test_what_is_lost_behind_the_last_step_does_no_harm(tmp_path: Path) -> None:
    found = cut(tmp_path, 0.999)
    assert "truncated" in {each.code for each in found.problems}
    assert any(each.speedup.mid > 1 for each in found.findings)


@pytest.mark.corpus
@pytest.mark.skipif(not FILE.exists(), reason="no corpus is set")
@pytest.mark.parametrize("share", [0.5, 0.85])
def test_half_of_a_real_recording_promises_nothing(tmp_path: Path, share: float) -> None:
    data = gzip.decompress(FILE.read_bytes())
    path = tmp_path / "half.pt.trace.json"
    path.write_bytes(data[: int(len(data) * share)])
    found = stepscope.load(path, cache=False).report(sections=["findings", "problems"])
    assert [each.code for each in found.findings if each.speedup.high > 1] == []
