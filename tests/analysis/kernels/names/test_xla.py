"""XLA's modules: which kernels are matrix products, and in which format."""

from __future__ import annotations

from pathlib import Path

import pytest

import stepscope
from stepscope.analysis.kernels.names.label import Compiled
from stepscope.analysis.kernels.names.xla import Module, compiled_kernels
from tests.builders.protobuf import field

JAX = Path(__file__).parents[3] / "fixtures" / "jax"
FLOAT32, BFLOAT16 = 11, 16
TF32_THRICE, FULL = 10, 11


def instruction(name: str, opcode: str, at: int, element: int, *more: bytes) -> bytes:
    """An instruction of shape [8, 8]."""
    shape = field(2, element) + field(3, bytes([8, 8]))
    return field(2, field(1, name) + field(2, opcode) + field(3, shape) + field(35, at) + b"".join(more))


def module(body: bytes, element: int = BFLOAT16) -> bytes:
    """A module whose one fusion, `gemm_fusion_dot.7`, has this body."""
    operands = instruction("a", "parameter", 1, element) + instruction("b", "parameter", 2, element)
    fused = field(1, "fused") + operands + body + field(5, 9)
    entry = (
        field(1, "main")
        + instruction("gemm_fusion_dot.7", "fusion", 20, element, field(38, 9))
        + field(5, 10)
    )
    return field(1, field(1, "jit_step") + field(3, fused) + field(3, entry))


READS = field(36, bytes([1, 2]))
WANTED = {"gemm_fusion_dot_7"}


@pytest.mark.parametrize(
    ("element", "setting", "expected"),
    [
        (BFLOAT16, b"", Compiled("bf16", True)),
        (FLOAT32, b"", Compiled("fp32", True, exact=False)),
        (FLOAT32, field(51, field(1, bytes([2, 2]))), Compiled("fp32", True)),
        (FLOAT32, field(51, field(2, TF32_THRICE)), Compiled("tf32", True)),
        (FLOAT32, field(51, field(2, FULL)), Compiled("fp32", True)),
    ],
)
def test_format_of_a_product(element: int, setting: bytes, expected: Compiled) -> None:
    """What it reads; of fp32 only a setting tells whether it is rounded."""
    body = instruction("dot.1", "dot", 3, element, READS, setting)
    assert Module(module(body, element)).kernels(WANTED) == {"gemm_fusion_dot_7": expected}


def test_attention_by_cudnn() -> None:
    """cuDNN's kernel has no name of the module's, but all calls of attention there read bf16."""
    kernel = "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7"
    call = instruction("custom-call.1", "custom-call", 3, BFLOAT16, READS, field(28, "__cudnn$fmhaSoftmax"))
    assert Module(module(call)).kernels({kernel}) == {kernel: Compiled("bf16", True)}
    assert Module(module(b"")).kernels({kernel}) == {}


def test_a_product_that_moved_away() -> None:
    """The name stays when XLA gives the product to a library."""
    body = instruction("sub.1", "subtract", 3, BFLOAT16, READS)
    assert Module(module(body)).kernels(WANTED) == {"gemm_fusion_dot_7": Compiled("bf16", False)}


def test_moving_only() -> None:
    """No arithmetic, no format."""
    body = instruction("slice.1", "slice", 3, BFLOAT16, field(36, bytes([1])))
    assert Module(module(body)).kernels(WANTED) == {"gemm_fusion_dot_7": Compiled("none", False)}


def test_a_real_module() -> None:
    """The fixture's matrix products are bf16, its weights fp32."""
    trace = stepscope.load(JAX).traces[0]
    found = compiled_kernels(
        trace, {"gemm_fusion_dot", "loop_subtract_fusion_3", "wrapped_convert", "nvjet_x"}
    )
    assert found == {
        "gemm_fusion_dot": Compiled("bf16", True),
        "loop_subtract_fusion_3": Compiled("fp32", False),
        "wrapped_convert": Compiled("none", False),
    }


@pytest.mark.parametrize("damaged", [b"", b"\xff" * 40, module(b"")[:-30], b"\x0a\x05abc"])
def test_damage_is_no_trouble(damaged: bytes) -> None:
    """A module that cannot be read tells nothing."""
    Module(damaged).kernels(WANTED)


def test_calls_without_end() -> None:
    """A computation that calls itself is read to a depth, not for ever."""
    loop = instruction("again", "fusion", 3, BFLOAT16, field(38, 9))
    assert "gemm_fusion_dot_7" in Module(module(loop)).kernels(WANTED)
