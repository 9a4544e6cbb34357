"""Layers that are written out op by op in training: what one op for each would save is promised."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.finding import Finding
from tests.analysis.findings.test_kernel_rules import ADD, BF16, HALF, found_in, op

_CODE = "unfused-elementwise"
WHOLE, ROW = "[16,2048,2048]", "[16,2048,1]"
PASS = 65  # µs in which 134 MB are read and as much is written
PRODUCT = op(10, "aten::mm", HALF, "[[8192,8192],[8192,2048]]", BF16, 20, 400)
Op = tuple[str, str, int]
RMS_NORM: list[Op] = [
    ("pow", f"[{WHOLE},[]]", PASS),
    ("mean", f"[{WHOLE},[],[],[]]", PASS // 2),
    ("add", f"[{ROW},[],[]]", 2),
    ("rsqrt", f"[{ROW}]", 2),
    ("mul", f"[{WHOLE},{ROW}]", PASS),
    ("mul", f"[{WHOLE},[2048]]", PASS),
]
LAYERS: list[Op] = [
    ("add", f"[{WHOLE},{WHOLE},[]]", 3 * PASS // 2),
    ("native_layer_norm", f"[{WHOLE},[],[2048],[2048],[]]", 2 * PASS),
    ("add", f"[{WHOLE},{WHOLE},[]]", 3 * PASS // 2),
]


def found(*ops: Op) -> dict[str, Finding]:
    """Of steps that are a product and these ops on tensors of 16 bits."""
    rows, at = [*PRODUCT], 420
    for place, (name, shapes, length) in enumerate(ops):
        kernel = f"{ADD}{place}"
        rows += op(30 + 20 * place, f"aten::{name}", kernel, shapes, BF16, at, length)
        at += length
    return found_in(*rows)


def test_a_norm_written_out_is_promised_what_one_op_saves() -> None:
    """A chain of few kernels that touches each tensor three times at most: its bytes alone say nothing."""
    seen = found(*RMS_NORM, RMS_NORM[0], RMS_NORM[0])[_CODE]
    assert seen.class_ == "time"
    assert "RMS norm" in seen.detail
    assert 1.05 < seen.speedup.low < seen.speedup.high < 2


@pytest.mark.parametrize("changed", ["mean", "rsqrt"])
def test_the_same_kernels_in_no_order_of_a_layer_get_no_promise(changed: str) -> None:
    other = [("neg" if name == changed else name, shapes, length) for name, shapes, length in RMS_NORM]
    seen = found(*other)
    assert _CODE not in seen or seen[_CODE].class_ == "advice"


def test_layers_that_are_ops_get_no_promise() -> None:
    seen = found(*LAYERS)
    assert _CODE not in seen or seen[_CODE].class_ == "advice"


def test_a_small_formula_beside_layers_gets_no_promise() -> None:
    small = [(name, shapes.replace("2048,2048", "64,2048"), 3) for name, shapes, _ in RMS_NORM]
    seen = found(*LAYERS, *small)
    assert _CODE not in seen or seen[_CODE].class_ == "advice"
