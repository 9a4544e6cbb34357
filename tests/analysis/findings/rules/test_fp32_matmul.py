"""Convolutions in plain fp32: the finding is for those whose setting keeps TF32 off."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.apply import apply_rules
from tests.analysis.compute.traces import compute_trace
from tests.analysis.findings.test_kernel_rules import PLAIN
from tests.builders.cases import case_of

DEVICE = {"id": 0, "name": "NVIDIA H200", "numSms": 132, "computeMajor": 9}
CONVOLUTION = "implicit_convolve_sgemm<float,float,1024,5,5,3,3,3,1,true,false,true>"
SHAPES, TYPES = "[[64,256,56,56],[256,256,3,3]]", "float,float"


def codes(*flags: str, product: bool = False) -> set[str]:
    """Of steps with one convolution for each value of allow_tf32, and a product if asked for."""
    kernels = [(CONVOLUTION, "aten::cudnn_convolution", SHAPES, flag) for flag in flags]
    if product:
        kernels.append((PLAIN, "aten::mm", "[[4096,2048],[2048,2048]]", None))
    length = 900 // len(kernels)
    lines = ["track  start  dur  name  kind  launches  shapes  dtypes  inputs"]
    for step in range(3):
        lines.append(f"main  {1000 * step}  1000  ProfilerStep#{step}  annotation  -  -  -  -")
        for place, (kernel, op, shapes, flag) in enumerate(kernels):
            at = 1000 * step + 10 + 20 * place
            inputs = "-" if flag is None else f'["","","[1,1]","[1,1]","[1,1]","1","False","False","{flag}"]'
            lines += [
                f"main  {at}  8  {op}  op  -  {shapes}  {TYPES}  {inputs}",
                f"main  {at + 1}  5  cudaLaunchKernel  runtime  {kernel}  -  -  -",
                f"stream 7  {1000 * step + 70 + length * place}  {length}  {kernel}  kernel  -  -  -  -",
            ]
        lines.append(f"main  {1000 * step + 100}  895  cudaDeviceSynchronize  runtime  -  -  -  -")
    return {found.code for found in apply_rules(case_of(compute_trace("\n".join(lines), DEVICE)))}


@pytest.mark.parametrize(
    ("flags", "fires"), [(["False"], True), (["True"], False), (["True", "False"], True)]
)
def test_a_convolution_that_may_use_tf32_is_not_asked_to(flags: list[str], fires: bool) -> None:
    """That it runs on plain cores is what the library chose."""
    assert ("fp32-matmul" in codes(*flags)) == fires


def test_products_beside_such_a_convolution_are_found() -> None:
    assert "fp32-matmul" in codes("True", product=True)
