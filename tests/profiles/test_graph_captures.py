"""Recordings of graph captures beside a profile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import stepscope


def event(name: str, category: str, start: float, length: float, **more: Any) -> dict[str, Any]:
    """One event of Kineto's."""
    on_device = category == "kernel"
    where = {"pid": 0, "tid": 7} if on_device else {"pid": 1, "tid": 1}
    return {"ph": "X", "cat": category, "name": name, "ts": start, "dur": length, **where, "args": more}


def write(path: Path, *events: dict[str, Any]) -> None:
    """A trace of torch.profiler."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [], "traceEvents": list(events)}))


@pytest.fixture
def served(tmp_path: Path) -> Path:
    """A replay of two kernels, and the recording of its capture."""
    write(
        tmp_path / "decode.json",
        event("hipGraphLaunch", "cuda_runtime", 0, 5, correlation=9),
        event("gemm", "kernel", 10, 20, correlation=9),
        event("relu", "kernel", 30, 10, correlation=9),
    )
    write(
        tmp_path / "capture_traces" / "bs_4_rank0.json",
        event("hipStreamBeginCapture", "cuda_runtime", 0, 1, correlation=1),
        event("aten::mm", "cpu_op", 2, 4, **{"Input Dims": [[4, 8], [8, 8]], "Input type": ["c10::BFloat16", "c10::BFloat16"]}),
        event("hipLaunchKernel", "cuda_runtime", 3, 1, correlation=2, kernel="gemm"),
        event("aten::relu", "cpu_op", 8, 4),
        event("hipLaunchKernel", "cuda_runtime", 9, 1, correlation=3, kernel="relu"),
        event("hipStreamEndCapture", "cuda_runtime", 20, 1, correlation=4),
    )  # fmt: skip
    (tmp_path / "capture_traces" / "execution_details.json").write_text('[{"batch_size": 4}]')
    return tmp_path


@pytest.mark.parametrize("cache", [True, False])
def test_the_capture_names_the_replay(served: Path, cache: bool) -> None:
    """Names, shapes and types; other JSON files of the engine are passed over."""
    for _ in range(2):
        trace = stepscope.load(served / "decode.json", cache=cache).traces[0]
        assert trace.ops["scope"].to_list() == ["aten::mm", "aten::relu"]
        assert trace.ops["shapes"][0] == "[[4, 8], [8, 8]]"
    rows = stepscope.report(served / "decode.json").ops.rows
    assert [(row.name, row.device_self_ns) for row in rows[:2]] == [
        ("aten::mm", 20_000),
        ("aten::relu", 10_000),
    ]


def test_a_folder_gives_the_profile_not_the_capture(served: Path) -> None:
    """Even where the capture was written later."""
    profile = stepscope.load(served)
    assert profile.traces[0].info.path.endswith("decode.json")
    assert [run.name for run in profile.other_runs] == ["capture_traces/bs_4_rank0.json"]


def test_a_damaged_capture_costs_the_names_alone(served: Path) -> None:
    (served / "capture_traces" / "bs_4_rank0.json").write_text("{")
    assert stepscope.load(served / "decode.json", cache=False).traces[0].ops.is_empty()
