"""Weights that autocast casts in every step of inference."""

from __future__ import annotations

import dataclasses

import pytest

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.rules.kernels import weight_casts
from stepscope.analysis.serving.workload import INFERENCE, TRAINING
from tests.analysis.compute.traces import compute_trace
from tests.builders.cases import case_of

HEAD = "track  start  dur  name  kind  launches  shapes  dtypes"
HALF = "nvjet_sm90_tst_128x128_64x6_2x1_v_bz_TNT"
CAST = "void at::native::vectorized_elementwise_kernel<8,bfloat16_copy>"
X, WEIGHT = "[32,4096]", "[16384,4096]"


def layer(at: int, cast: str, outer: str = "aten::linear") -> list[str]:
    """A layer under autocast: 400 µs of a cast, 300 of a product."""
    return [
        f"main  {at + 10}  60  {outer}  op  -  [{X},{WEIGHT},[]]  float,float",
        f"main  {at + 12}  20  aten::to  op  -  [{cast},[],[],[],[]]  float",
        f"main  {at + 14}  16  aten::copy_  op  -  [{cast},{cast},[]]  c10::BFloat16,float",
        f"main  {at + 15}  8  cudaLaunchKernel  runtime  {CAST}  -  -",
        f"main  {at + 40}  25  {outer}  op  -  [{X},{WEIGHT},[]]  c10::BFloat16,c10::BFloat16",
        f"main  {at + 45}  8  cudaLaunchKernel  runtime  {HALF}  -  -",
        f"stream 7  {at + 30}  400  {CAST}  kernel  -  -  -",
        f"stream 7  {at + 430}  300  {HALF}  kernel  -  -  -",
        f"main  {at + 100}  880  cudaDeviceSynchronize  runtime  -  -  -",
    ]


def case(cast: str, workload: str = INFERENCE, outer: str = "aten::linear") -> Case:
    """Three steps of one layer."""
    lines = [HEAD]
    for number in range(3):
        lines.append(f"main  {1000 * number}  1000  ProfilerStep#{number}  annotation  -  -  -")
        lines += layer(1000 * number, cast, outer)
    made = case_of(compute_trace("\n".join(lines)))
    return dataclasses.replace(made, workload=workload)


def test_weights_that_are_cast_in_every_step() -> None:
    found = weight_casts.find(case(WEIGHT))
    assert found is not None
    assert found.evidence["casts_per_step"] == 1
    assert found.speedup.low > 1.3
    assert "autocast" in weight_casts.RULE.fix["pytorch"]


@pytest.mark.parametrize(
    ("cast", "workload", "outer"),
    [
        (WEIGHT, TRAINING, "aten::linear"),  # they change: once a step is right
        (X, INFERENCE, "aten::linear"),  # what is computed is cast
        (WEIGHT, INFERENCE, "aten::bmm"),  # has no weights
        ("damaged", INFERENCE, "aten::linear"),
    ],
)
def test_casts_that_are_no_mistake(cast: str, workload: str, outer: str) -> None:
    assert weight_casts.find(case(cast, workload, outer)) is None
