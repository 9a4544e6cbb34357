"""Recordings of graph captures beside a profile."""

from __future__ import annotations

from pathlib import Path

import pytest

import stepscope
from tests.builders.documents import span
from tests.builders.files import write_kineto


@pytest.fixture
def served(tmp_path: Path) -> Path:
    """A replay of two kernels, and the recording of its capture."""
    write_kineto(
        tmp_path / "decode.json",
        span("cuda_runtime", "hipGraphLaunch", 0, 5, correlation=9),
        span("kernel", "gemm", 10, 20, pid=0, tid=7, correlation=9),
        span("kernel", "relu", 30, 10, pid=0, tid=7, correlation=9),
    )
    write_kineto(
        tmp_path / "capture_traces" / "bs_4_rank0.json",
        span("cuda_runtime", "hipStreamBeginCapture", 0, 1, correlation=1),
        span("cpu_op", "aten::mm", 2, 4, **{"Input Dims": [[4, 8], [8, 8]], "Input type": ["c10::BFloat16", "c10::BFloat16"]}),
        span("cuda_runtime", "hipLaunchKernel", 3, 1, correlation=2, kernel="gemm"),
        span("cpu_op", "aten::relu", 8, 4),
        span("cuda_runtime", "hipLaunchKernel", 9, 1, correlation=3, kernel="relu"),
        span("cuda_runtime", "hipStreamEndCapture", 20, 1, correlation=4),
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
