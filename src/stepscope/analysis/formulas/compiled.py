"""Kernels that torch.compile writes: their launch lists the arrays they are given, and how many elements they run over."""

from __future__ import annotations

import re

from stepscope.analysis.formulas.call import Call, Cost, Tensor

TRITON = re.compile(r"^triton_(poi|red|per|tem)_fused_")


def triton(call: Call) -> Cost:
    """Each array once, but no more of it than the kernel runs over; the last is the result."""
    arrays = call.tensors()
    if call.name.startswith("triton_tem_fused_"):
        return _template(arrays)
    sides = [int(text) for text in (call.get(place) for place in range(len(call.inputs))) if text.isdigit()]
    over = 1
    for side in sides:
        over *= max(1, side)
    if not arrays or not sides:
        raise ValueError("no arrays")
    seen = [Tensor((min(array.elements, over),), array.item) for array in arrays]
    return Cost(max(array.elements for array in seen), seen[:-1], seen[-1:])


def _template(arrays: list[Tensor]) -> Cost:
    """A product: its operands come first, its result last."""
    left, right, *_, result = arrays
    (m, k), (k2, n) = left.shape[-2:], right.shape[-2:]
    if k != k2 or result.shape[-2:] != (m, n):
        raise ValueError("shapes do not fit")
    batch = result.elements // max(1, m * n)
    return Cost(2 * batch * m * n * k, arrays[:-1], [result])
