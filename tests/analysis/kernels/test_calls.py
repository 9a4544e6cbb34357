"""Kernels by name and launch: sums, launch shapes, formats, tensor cores."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import stepscope
from stepscope.analysis.kernels.calls import kernel_calls, kernels_table
from tests.builders.gpu_trace import H200, gpu_trace

CORPUS = os.environ.get("STEPSCOPE_CORPUS")
BF16 = '["c10::BFloat16", "c10::BFloat16"]'
NVJET = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)"
TABLE = f"""
    host     |   0 | 1000 | annotation | ProfilerStep#1
    host     |  10 |  100 | op         | aten::mm
    host     |  20 |   10 | runtime    | cudaLaunchKernel -> 5
    host     | 200 |   10 | runtime    | cudaLaunchKernel -> 6
    host     | 300 |   10 | runtime    | cudaLaunchKernel -> 7
    stream 7 | 100 |  400 | kernel     | {NVJET}
    stream 7 | 500 |  100 | kernel     | {ADD}
    stream 7 | 600 |  300 | kernel     | {ADD}
"""
LAUNCH = {"grid": [264, 1, 1], "block": [128, 1, 1], "registers": 32, "shared_bytes": 0}
FACTS: dict[str, Any] = {
    "kernels": {
        5: {"grid": [2, 66, 1], "block": [384, 1, 1], "registers": 168, "shared_bytes": 213220, "occupancy": 0.0, "op": 1},
        6: LAUNCH,
        7: LAUNCH,
    },
    "ops": {1: {"dtypes": BF16}},
}  # fmt: skip


def test_rows() -> None:
    """One row for each kernel and launch shape, the longest first."""
    rows = kernels_table(kernel_calls(gpu_trace(TABLE, **FACTS))).to_dicts()
    assert [row["name"] for row in rows] == [NVJET, ADD]
    assert rows[0] | {"op": "aten::mm", "calls": 1, "total_ns": 400, "share": 0.5} == rows[0]
    assert rows[0] | {"precision": "bf16", "tensor_cores": True, "eligible": True} == rows[0]
    assert (
        rows[1] | {"op": None, "calls": 2, "total_ns": 400, "mean_ns": 200, "min_ns": 100, "max_ns": 300}
        == rows[1]
    )
    assert rows[1] | {"precision": "fp32", "tensor_cores": False, "eligible": False} == rows[1]


def test_launch_shapes() -> None:
    """One block of 384 threads fills the shared memory of an SM; 16 of 128 threads fit, and 2 are there."""
    rows = kernels_table(kernel_calls(gpu_trace(TABLE, **FACTS))).to_dicts()
    assert rows[0] | {"blocks_per_sm": 1.0, "waves_per_sm": 1.0, "occupancy": 384 / 2048} == rows[0]
    assert rows[1] | {"blocks_per_sm": 2.0, "waves_per_sm": 2 / 16, "occupancy": 2 * 128 / 2048} == rows[1]


def test_a_device_whose_limits_nobody_knows() -> None:
    """What the profile recorded stays; the rest is null."""
    other = {"id": 0, "name": "AMD Instinct MI300X", "numSms": 304, "warpSize": 64}
    rows = kernels_table(kernel_calls(gpu_trace(TABLE, device=other, **FACTS))).to_dicts()
    assert rows[0]["occupancy"] == 0.0
    assert rows[0]["waves_per_sm"] is None
    assert rows[1]["blocks_per_sm"] == pytest.approx(264 / 304)


def test_without_facts() -> None:
    """Kernels without grid or device still count."""
    row = kernels_table(kernel_calls(gpu_trace("stream 7 | 0 | 10 | kernel | my_kernel", device={}))).row(
        0, named=True
    )
    assert row["calls"] == 1
    assert row["grid"] is row["occupancy"] is row["tensor_cores"] is row["eligible"] is None
    assert row["precision"] == "unknown"


def test_only_kernels_of_steps_count() -> None:
    """Work of the warm-up is none of the steps' work."""
    trace = gpu_trace("""
        host     |   0 |  10 | runtime    | cudaLaunchKernel -> 3
        host     | 100 | 900 | annotation | ProfilerStep#1
        host     | 110 |  10 | runtime    | cudaLaunchKernel -> 4
        stream 7 |  20 |   5 | kernel     | warm_up
        stream 7 | 200 |   5 | kernel     | work
        """)
    assert kernels_table(kernel_calls(trace))["name"].to_list() == ["work"]


def test_no_kernels() -> None:
    """A profile without a device has an empty table."""
    assert len(kernels_table(kernel_calls(gpu_trace("host | 0 | 10 | op | aten::add", device=H200)))) == 0


@pytest.mark.corpus
@pytest.mark.skipif(CORPUS is None, reason="wants the corpus of real traces")
@pytest.mark.parametrize(
    "path", ["h200/gpt_bf16_eager.pt.trace.json.gz", "public/a100x2_nccl.json.gz", "public/kineto_resnet50_workers0.pt.trace.json.gz"]
)  # fmt: skip
def test_occupancy_is_that_of_the_profiler(path: str) -> None:
    """To its whole percents, wherever the profiler has a figure: it says 0 of kernels with much shared memory."""
    trace = stepscope.load(Path(CORPUS or "") / path).traces[0]
    recorded = trace.kernels.select("event", recorded=pl.col("occupancy") / 100).filter(
        pl.col("recorded") > 0
    )
    both = kernel_calls(trace).join(recorded, on="event")
    assert len(both) > 500
    assert (both["occupancy"] - both["recorded"]).abs().max() <= 0.0101


@pytest.mark.corpus
@pytest.mark.skipif(CORPUS is None, reason="wants the corpus of real traces")
def test_products_of_a_compiled_jax_program_are_16_bit() -> None:
    """XLA's module tells what `gemm_fusion_dot_74` computes in."""
    trace = stepscope.load(Path(CORPUS or "") / "h200" / "jax_gpu").traces[0]
    products = kernel_calls(trace).filter(pl.col("eligible"))
    assert products["precision"].unique().to_list() == ["bf16"]
    assert products["tensor_cores"].all()
