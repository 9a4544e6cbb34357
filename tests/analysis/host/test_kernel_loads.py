"""Launches that load a kernel's code: a part of the account, and warm-up rather than something to launch faster."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.host.kernel_loads import loading_launches
from tests.builders.cases import case_of_text, findings_of

STEP = [
    "main  0  10000  ProfilerStep#1  annotation  -",
    "main  100  60  aten::mm  op  -",
    "main  110  40  cudaLaunchKernel  runtime  gemm",
    "stream 7  160  400  gemm  kernel  -",
    "main  600  9000  aten::add_  op  -",
]
LOAD = ["main  610  8900  cudaLaunchKernel  runtime  add", "stream 7  9505  10  add  kernel  -"]


@pytest.mark.parametrize(
    ("rows", "loads"),
    [
        (LOAD, True),
        ([*LOAD, "stream 7  700  8000  other  kernel  -"], False),
        ([*LOAD, "stream 7  2000  10  other  kernel  -"], False),
        (["main  610  900  cudaLaunchKernel  runtime  add", "stream 7  1505  10  add  kernel  -"], False),
        (["main  610  8900  cudaMalloc  runtime  -"], False),
    ],
)
def test_a_launch_that_takes_long_beside_an_idle_device_loads_a_kernel(rows: list[str], loads: bool) -> None:
    """The kernel itself may begin before its call returns; a queue that is full has work."""
    trace = case_of_text([*STEP, *rows]).trace
    assert len(loading_launches(trace)) == loads


def test_loading_is_warm_up_and_nothing_is_promised_of_it() -> None:
    """The kernel runs in the last 5 µs of the call that takes 8.9 ms."""
    slices = case_of_text([*STEP, *LOAD]).all_slices
    assert int(slices.filter(pl.col("part") == "compile")["ns"].sum()) == 8_895_000
    found = {each.code: each for each in findings_of([*STEP, *LOAD])}
    assert found["warm-up"].share == pytest.approx(0.89, abs=0.01)
    assert "8.89 ms of 10.0 ms" in found["warm-up"].detail
    assert not {"launch-bound", "recompilation"} & found.keys()
