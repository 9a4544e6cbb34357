"""Inference or training, by what was recorded."""

from __future__ import annotations

import pytest

from stepscope.analysis.serving.workload import workload
from tests.builders.inline import trace_of

EAGER = """
track     start  dur  name              kind     launches
main          0   20  {op}              op       -
main          5    5  cudaLaunchKernel  runtime  gemm
stream 7     10   30  gemm              kernel   -
"""
GRAPH = """
track     start  dur  name             kind     launches
main          0   20  aten::copy_      op       -
main         30    5  cudaGraphLaunch  runtime  {kernel}
stream 7     40   30  {kernel}         kernel   -
"""


@pytest.mark.parametrize(
    ("op", "kind", "engine"),
    [
        ("aten::mm", "inference", None),
        ("AddmmBackward0", "training", None),
        ("Optimizer.step#AdamW.step", "training", None),
        ("vllm::moe_forward", "inference", "vLLM"),
        ("sgl_kernel::rmsnorm", "inference", "SGLang"),
        ("step[DECODE bs=1]", "inference", "SGLang"),
    ],
)
def test_by_names(op: str, kind: str, engine: str | None) -> None:
    """An engine's names decide; without them, the absence of a backward pass and an optimizer."""
    found = workload(trace_of(EAGER.format(op=op), framework="pytorch"))
    assert (found.kind, found.engine) == (kind, engine)
    assert found.evidence


@pytest.mark.parametrize(
    ("kernel", "kind"), [("sm80_xmma_dgrad_tf32", "inference"), ("sm80_xmma_wgrad_tf32", "training")]
)
def test_a_transposed_convolution_runs_the_kernel_of_a_gradient(kernel: str, kind: str) -> None:
    """That of the inputs; that of the weights only training needs."""
    text = EAGER.format(op="aten::conv_transpose1d").replace("gemm", kernel)
    assert workload(trace_of(text, framework="pytorch")).kind == kind


@pytest.mark.parametrize("op", ["aten::empty", "triton_poi_fused_cos_sin_0"])
def test_a_recording_without_a_model_is_neither(op: str) -> None:
    """As of a hook that only communicates, or of a kernel that is tried out."""
    text = EAGER.format(op=op).replace("gemm", "triton_poi_fused_cos_sin_0")
    assert workload(trace_of(text, framework="pytorch")).kind is None


def test_what_graphs_hide_is_not_guessed() -> None:
    """A whole training step may be one graph: its kernels say so, or nothing does."""
    assert workload(trace_of(GRAPH.format(kernel="gemm"), framework="pytorch")).kind is None
    assert workload(trace_of(GRAPH.format(kernel="softmax_backward"), framework="pytorch")).kind == "training"


def test_other_frameworks_are_not_guessed() -> None:
    """A program may hold its gradient under any name."""
    assert workload(trace_of(EAGER.format(op="dot"), framework="jax")).kind is None
