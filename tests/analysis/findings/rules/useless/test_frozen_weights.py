"""Gradients of weights that no optimizer updates, between those of adapters that one does."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from stepscope.analysis.findings.rules.useless import useless_backward
from tests.analysis.findings.op_steps import GEMM, Op, case
from tests.analysis.findings.rules import host_training
from tests.analysis.findings.rules.host_training import Call, case_of_calls

ENGINE = "autograd::engine::evaluate_function:"
LEFT_OUT = "[[],[]]"  # what PyTorch writes of lists of more than 30 tensors


def gradient(shape: str, length: int = 0) -> Op:
    """The node that adds a gradient up, if there is one already."""
    added = (Op("aten::add_", f"[{shape},{shape},[]]", GEMM, length, "autograd"),) if length else ()
    node = Op("torch::autograd::AccumulateGrad", f"[{shape}]", track="autograd", inside=added)
    return Op(f"{ENGINE} torch::autograd::AccumulateGrad", track="autograd", inside=(node,))


ADAPTERS = "[[[8,1024],[8,1024]]]"
NORMED = "[[4,2048,1024],[4,2048,1024],[],[4,2048,1],[1024],[]]"


def node(name: str, *inside: Op) -> Op:
    """A node of the backward pass."""
    mine = Op(name, track="autograd", inside=inside)
    return Op(f"{ENGINE} {name}", track="autograd", sequence="1", inside=(mine,))


def in_backward(name: str, shapes: str, length: int, kernel: str = GEMM, inputs: str = "-") -> Op:
    return Op(name, shapes, kernel, length, "autograd", inputs=inputs)


def adapters(
    updated: str = ADAPTERS, between: Sequence[Op] = (), below: Sequence[Op] = (), rows: int = 8192
) -> list[Op]:
    """A backward pass in which gradients of frozen weights and of small adapters take turns; more between the layers, and below them."""
    update = Op("aten::_fused_adamw_", updated, "multi_tensor_apply_kernel_adam", 10)

    def layer(*more: Op) -> list[Op]:
        weights = in_backward("aten::mm", f"[[4096,{rows}],[{rows},1024]]", 100)
        inputs = in_backward("aten::mm", f"[[{rows},4096],[4096,1024]]", 100)
        last = [gradient("[4096,1024]"), gradient("[8,1024]")]
        return [node("AddmmBackward0", inputs, weights, *more), *last]

    forward = Op("aten::mm", "[[8192,1024],[1024,4096]]", GEMM, 200, sequence="1")
    step = Op("Optimizer.step#AdamW.step", kind="annotation", dtypes="-", inside=(update,))
    bias = in_backward("aten::sum", f"[[{rows},4096],[],[],[]]", 60, "reduce_kernel")
    return [forward, *layer(), *between, *layer(bias), *below, step]


def share_of(steps: list[Op], blocks: int | None = None) -> float:
    """Which share of the step its kernels take that make gradients which nothing uses."""
    found = useless_backward.find(case(*[steps] * 3, blocks=blocks))
    return sum(each["ns_per_step"] for each in found.evidence["names"]) / 1e6 if found else 0.0


def test_frozen_weights_that_get_gradients_between_those_of_adapters() -> None:
    found = useless_backward.find(case(*[adapters()] * 3))
    assert found is not None
    assert 1.2 < found.speedup.mid < 1.6
    assert share_of(adapters()) == pytest.approx(0.2, abs=0.01)
    assert useless_backward.find(case(*[adapters("[[[8,1024],[4096,1024]]]")] * 3)) is None


def test_frozen_weights_above_and_below_the_last_adapter() -> None:
    """The pass goes on to the table below the first layer; what is above it counts as well."""
    cleared = in_backward("aten::fill_", "[[32000,1024],[]]", 50)
    below = [node("EmbeddingBackward0", cleared), gradient("[32000,1024]")]
    assert share_of(adapters(below=below)) == pytest.approx(0.25, abs=0.01)


def test_frozen_biases() -> None:
    assert share_of(adapters(below=[gradient("[4096]")])) == pytest.approx(0.26, abs=0.01)
    trained = "[[[8,1024],[8,1024],[4096]]]"
    assert share_of(adapters(trained, between=[gradient("[4096]")])) == pytest.approx(0.2, abs=0.01)


NORM = "aten::native_layer_norm_backward"
NORMED = "[[4,2048,1024],[4,2048,1024],[],[4,2048,1],[4,2048,1],[1024],[1024],[]]"
LOOKED_UP = "[[8,1024,1024],[8,1024],[],[],[]]"
OTHERS = {
    "norms": (
        "[1024]",
        node("LayerNormBackward0", in_backward(NORM, NORMED, 80, "GammaBetaBackwardCUDAKernel")),
    ),
    "tables": (
        "[32000,1024]",
        node(
            "EmbeddingBackward0",
            in_backward("aten::embedding_dense_backward", LOOKED_UP, 80, inputs='["","","32000"]'),
        ),
    ),
    "casts": (
        "[4096,1024]",
        node(
            "ToCopyBackward0",
            Op(
                "aten::_to_copy",
                "[[4096,1024]]",
                track="autograd",
                inside=(in_backward("aten::copy_", "[[4096,1024],[4096,1024],[]]", 80),),
            ),
        ),
    ),
    "sums over steps": ("[4096,1024]", gradient("[4096,1024]", 80)),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_other_work_for_frozen_weights(kind: str) -> None:
    shape, made = OTHERS[kind]
    assert share_of(adapters(between=[made, gradient(shape)])) == pytest.approx(0.28, abs=0.01)


def test_the_gradient_of_the_input_of_a_norm_is_used() -> None:
    other = node("LayerNormBackward0", in_backward(NORM, NORMED, 80, "layer_norm_grad_input_kernel"))
    assert share_of(adapters(between=[other, gradient("[1024]")])) == pytest.approx(0.2, abs=0.01)


def test_a_weight_with_as_many_rows_as_the_batch() -> None:
    """The gradient of the input has the shape of a weight then; a layer has the gradient of one weight."""
    square = [gradient("[1024,1024]")]
    assert share_of(adapters(below=square, rows=1024)) == pytest.approx(0.2, abs=0.01)


def test_an_optimizer_of_one_long_vector_updates_all_weights() -> None:
    """They are copied into the vector before, and out of it after."""
    assert share_of(adapters("[[[8,1024],[8,1024],[8388608]]]")) == 0
    assert share_of(adapters("[[[8,1024],[8,1024],[16]]]")) > 0.1


def test_two_optimizers_that_share_the_weights_of_one_shape() -> None:
    """Each covers half of them."""
    steps = adapters(LEFT_OUT)
    assert share_of(steps, blocks=64) > 0.1
    assert share_of([*steps, steps[-1]], blocks=64) == 0


def test_frozen_weights_on_a_host() -> None:
    """The ops compute by themselves; those of used gradients stay."""
    product = Call("aten::mm", 300, "[[512,64],[64,4096]]")
    layer = Call(
        f"{ENGINE} MmBackward0", 1, sequence="1", inside=(Call("MmBackward0", 1, inside=(product,)),)
    )
    update = host_training.optimizer(Call("aten::add_", 1, "[[8,4096],[8,4096]]"))
    frozen, adapter = host_training.gradient("[512,4096]"), host_training.gradient("[8,4096]")
    made = case_of_calls(
        host_training.forward(300), layer, frozen, host_training.backward(100), adapter, update
    )
    (found,) = useless_backward.RULE.findings(made)
    assert found.share == pytest.approx(0.3, abs=0.01)
