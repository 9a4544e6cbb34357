"""FLOPs and bytes of each family of ops, with sizes that can be checked by hand."""

from __future__ import annotations

import json

import pytest

from stepscope.analysis.ops.flops import cost_of, total_bytes

F, H, L, B = "float", "c10::BFloat16", "long int", "bool"


def cost(
    name: str, shapes: object, dtypes: list[str], inputs: list[str] | None = None, item: int | None = None
) -> tuple[int | None, int | None]:
    """FLOPs and bytes of one call."""
    found = cost_of(f"aten::{name}", json.dumps(shapes), json.dumps(dtypes), json.dumps(inputs or []), item)
    return (found.flops, total_bytes(found)) if found else (None, None)


@pytest.mark.parametrize(
    ("name", "shapes", "dtypes", "inputs", "size"),
    [
        ("add", [[4, 6], [6]], [F, F], [], 4 * (24 + 6 + 24)),  # a broadcast input counts its own size
        ("add_", [[24], [24]], [F, F], [], 4 * 72),  # writes what it read
        ("mul", [[24], []], [H, "double"], [], 2 * 48),
        ("mul", [[24], [24], [24]], [F, F, F], [], 4 * 72),  # the third is where the result goes
        ("clamp_min", [[24], [], [24]], [F, "", F], [], 4 * 48),
        ("eq", [[24], [24]], [F, F], [], 4 * 48 + 24),
        ("where", [[24], [24], [24]], [B, F, F], [], 24 + 4 * 72),
        ("addcmul_", [[24], [24], [24]], [F, F, F], [], 4 * 72),  # a gradient with itself
        ("fill_", [[24], []], [F, "Scalar"], [], 4 * 24),
        ("copy_", [[24], [24], []], [H, F, ""], [], 2 * 24 + 4 * 24),
        ("native_dropout", [[24], [], []], [H, "", ""], [], 2 * 48 + 24),
        ("sum", [[4, 6], [], []], [F, "", ""], ["", "[1]", "False"], 4 * (24 + 4)),
        ("_softmax", [[4, 6], [], []], [H, "", ""], ["", "-1", "True"], 2 * 24 + 4 * 24),
        ("native_layer_norm", [[4, 6], [], [6], [6]], [F, "", F, F], ["", "[6]"], 4 * (24 + 12 + 24 + 8)),
        ("embedding", [[1_000_000, 8], [1]], [H, L], [], 8 + 2 * 8),  # of a row of such a table nothing repeats
        ("max_pool2d_with_indices", [[1, 1, 4, 4]], [F], ["", "[2, 2]", "[2, 2]", "[0, 0]"], 4 * 20 + 8 * 4),
        ("_adaptive_avg_pool2d", [[2, 3, 4, 4], []], [F, ""], ["", "[1, 1]"], 4 * (96 + 6)),
        ("nll_loss_forward", [[8, 100], [8]], [F, L], [], 8 * 8 + 4 * 8),
    ],
)  # fmt: skip
def test_bytes(name: str, shapes: object, dtypes: list[str], inputs: list[str], size: int) -> None:
    """Each input once, each result once."""
    assert cost(name, shapes, dtypes, inputs)[1] == pytest.approx(size, abs=16 if name == "embedding" else 0)


def test_lists_have_the_size_that_their_kernel_names() -> None:
    lists = [[[4, 4], [4]], [[4, 4], [4]], []]
    names = ["TensorList", "TensorList", "Scalar"]
    assert cost("_foreach_add_", lists, names) == (20, None)
    assert cost("_foreach_add_", lists, names, item=4) == (20, 4 * 60)
    assert cost("cat", [[[4], [8]], []], ["TensorList", "Scalar"], item=2) == (0, 2 * 24)


def test_a_fused_optimizer_reads_four_lists_and_writes_three() -> None:
    one = [[100]]
    assert cost("_fused_adamw_", [one, one, one, one, [], [[]]], ["TensorList"] * 6, item=4)[1] == 4 * 700


def test_a_causal_mask_halves_attention() -> None:
    """64 queries and keys: 64·65/2 pairs."""
    shapes = [[2, 4, 64, 8]] * 3
    inputs = ["", "", "", "0.0", "True"]
    whole = cost("_scaled_dot_product_flash_attention", shapes, [H] * 3)[0]
    assert whole == 4 * 8 * 64 * 64 * 8
    causal = cost("_scaled_dot_product_flash_attention", shapes, [H] * 3, inputs)[0]
    assert causal == 4 * 8 * (64 * 65 // 2) * 8


def test_attention_with_the_heads_behind_the_length() -> None:
    shapes = [[2, 64, 4, 8], [2, 32, 4, 8], [2, 32, 4, 8]]
    assert cost("_flash_attention_forward", shapes, [H] * 3)[0] == 4 * 8 * 64 * 32 * 8


def test_recurrent_layers_meet_their_weights_at_every_place() -> None:
    weights = [[32, 8], [32, 8], [32], [32]]
    assert cost("_cudnn_rnn", [[10, 2, 8], weights], [F, "TensorList"])[0] == 2 * 10 * 2 * (2 * 32 * 8)


def test_kernels_of_torch_compile() -> None:
    """Arrays count as far as the kernel runs over them: 100 of a table of 1000."""
    found = cost_of("triton_poi_fused_add_0", "[[1000],[100],[]]", '["float","float",""]', '["","","100"]')
    assert found is not None
    assert total_bytes(found) == 800
    product = cost_of("triton_tem_fused_mm_1", "[[2,3],[3,5],[2,5]]", '["float","float","float"]', "[]")
    assert product is not None
    assert product.flops == 2 * 2 * 3 * 5


def test_an_op_without_a_formula_whose_kernel_is_elementwise() -> None:
    assert cost_of("mylib::twist", "[[24]]", '["float"]', None) is None
    found = cost_of("mylib::twist", "[[24]]", '["float"]', None, None, True)
    assert found is not None
    assert total_bytes(found) == 4 * 48
