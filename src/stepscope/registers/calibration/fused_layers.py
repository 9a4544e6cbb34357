"""How long layers that are one op take, beside kernels that do nothing but read and write as much."""

from __future__ import annotations

from stepscope.registers.entry import measured

_WHEN = "2026-11-19"

FUSED_LAYER_BEST = measured(
    "FUSED_LAYER_BEST",
    1.2,
    unit="× a kernel that reads and writes all elements",
    device="H200",
    how="layers in the healthy jobs against copies and products of the same bytes; compiled chains at 60 % of bandwidth",
    when=_WHEN,
    seen="1.5 to 2.4 as ops of PyTorch (GELU, layer norm, softmax), 1.25 to 1.6 compiled",
)
FUSED_LAYER_WORST = measured(
    "FUSED_LAYER_WORST",
    2.4,
    unit="× a kernel that reads and writes all elements",
    device="H200",
    how="layers in the healthy jobs against copies and products of the same bytes",
    when=_WHEN,
    seen="1.5 to 2.4 as ops of PyTorch (GELU, layer norm, softmax)",
)
FUSED_GRADIENT_BEST = measured(
    "FUSED_GRADIENT_BEST",
    1.5,
    unit="× a kernel that reads and writes all elements",
    device="H200",
    how="gradients of layers in the healthy jobs against copies and products of the layers' bytes",
    when=_WHEN,
    seen="1.5 (softmax) to 2.3 (GELU)",
)
FUSED_GRADIENT_WORST = measured(
    "FUSED_GRADIENT_WORST",
    2.3,
    unit="× a kernel that reads and writes all elements",
    device="H200",
    how="gradients of layers in the healthy jobs against copies and products of the layers' bytes",
    when=_WHEN,
    seen="1.5 (softmax) to 2.3 (GELU)",
)
FUSED_GRADIENT_WORST_OF_NORMS = measured(
    "FUSED_GRADIENT_WORST_OF_NORMS",
    5.9,
    unit="× a kernel that reads and writes all elements",
    device="H200",
    how="gradients of layer norms in the healthy jobs, with those of their weights, against copies of the layers' bytes",
    when=_WHEN,
    seen="3.6 to 5.9",
)
