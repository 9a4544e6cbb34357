"""FLOPs and bytes of ops from their shapes. A multiply-add counts as two; a formula that is not sure gives null.

Matrix products: mm, addmm, bmm, baddbmm: 2·M·N·K per product. Convolution: 2·outputs·(in channels / groups)·kernel
volume; its backward the same once for each gradient that is asked for. Attention: 4·B·H·Lq·Lk·D forward (Q·Kᵀ and
P·V), 10·B·H·Lq·Lk·D backward with recomputation. Elementwise: one per output element; reductions: one per input
element. Bytes: every input read once and the output written once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import polars as pl

Shape = list[int]

_ITEM_BYTES = {
    "float": 4, "double": 8, "c10::Half": 2, "c10::BFloat16": 2, "int": 4, "long int": 8, "long": 8, "short": 2,
    "signed char": 1, "unsigned char": 1, "bool": 1, "c10::Float8_e4m3fn": 1, "c10::Float8_e5m2": 1,
    "c10::complex<float>": 8, "c10::complex<double>": 16,
}  # fmt: skip
_ELEMENTWISE = frozenset(
    [
        "add",
        "add_",
        "sub",
        "sub_",
        "mul",
        "mul_",
        "div",
        "div_",
        "neg",
        "relu",
        "relu_",
        "clamp_min",
        "clamp_min_",
        "threshold_backward",
        "gelu",
        "gelu_backward",
        "silu",
        "silu_backward",
        "sigmoid",
        "sigmoid_backward",
        "tanh",
        "tanh_backward",
        "exp",
        "log",
        "sqrt",
        "rsqrt",
        "pow",
        "addcmul",
        "addcmul_",
        "addcdiv",
        "addcdiv_",
        "lerp",
        "lerp_",
        "where",
        "masked_fill",
        "masked_fill_",
        "native_dropout",
        "native_dropout_backward",
        "dropout",
        "eq",
        "ne",
        "gt",
        "lt",
        "ge",
        "le",
        "maximum",
        "minimum",
    ]
)
_REDUCTIONS = frozenset(
    [
        "sum",
        "mean",
        "amax",
        "amin",
        "max",
        "min",
        "argmax",
        "argmin",
        "norm",
        "linalg_vector_norm",
        "prod",
        "var",
        "std",
    ]
)


def work_of_ops(calls: pl.DataFrame) -> list[pl.Series]:
    """`flops` and `bytes` for each call, judged once per distinct name, shapes, dtypes and inputs."""
    key = ["name", "shapes", "dtypes", "concrete_inputs"]
    distinct = calls.select(key).unique(maintain_order=True)
    found = [
        _work(str(name), _parsed(shapes), _parsed(dtypes), _parsed(inputs))
        for name, shapes, dtypes, inputs in distinct.iter_rows()
    ]
    table = distinct.with_columns(
        pl.Series("flops", [flops for flops, _ in found], dtype=pl.Int64),
        pl.Series("bytes", [size for _, size in found], dtype=pl.Int64),
    )
    joined = calls.select(key).join(table, on=key, how="left", nulls_equal=True, maintain_order="left")
    return [joined["flops"], joined["bytes"]]


def _parsed(text: str | None) -> list[Any]:
    try:
        value = msgspec.json.decode(text) if text else []
    except msgspec.DecodeError:
        return []
    return value if isinstance(value, list) else []


def _work(
    name: str, shapes: list[Any], dtypes: list[Any], inputs: list[Any]
) -> tuple[int | None, int | None]:
    base = name.removeprefix("aten::")
    formula = _FORMULAS.get(base) or (
        _elementwise if base in _ELEMENTWISE else _reduction if base in _REDUCTIONS else None
    )
    if formula is None or not shapes:
        return None, None
    try:
        flops, output = formula(shapes, inputs)
        size = _bytes(shapes, dtypes, output)
    except (IndexError, TypeError, ValueError, KeyError, ZeroDivisionError):
        return None, None
    return (flops, size) if 0 <= flops < 2**62 else (None, None)


def _bytes(shapes: list[Any], dtypes: list[Any], output: int) -> int | None:
    sizes = [_ITEM_BYTES.get(str(dtype)) for dtype in dtypes]
    tensors = [(_numel(shape), size) for shape, size in zip(shapes, sizes, strict=False) if shape and size]
    if not tensors:
        return None
    total = sum(count * size for count, size in tensors) + output * tensors[0][1]
    return total if total < 2**62 else None


def _numel(shape: Any) -> int:
    if not isinstance(shape, list) or not all(isinstance(size, int) and size >= 0 for size in shape):
        raise ValueError("no shape")
    return math.prod(shape)


def _matrix(left: Shape, right: Shape) -> tuple[int, int]:
    (m, k), (k2, n) = left, right
    if k != k2:
        raise ValueError("shapes do not fit")
    return 2 * m * n * k, m * n


def _mm(shapes: list[Any], _: list[Any]) -> tuple[int, int]:
    return _matrix(shapes[0], shapes[1])


def _addmm(shapes: list[Any], _: list[Any]) -> tuple[int, int]:
    return _matrix(shapes[1], shapes[2])


def _batched(left: Shape, right: Shape) -> tuple[int, int]:
    flops, output = _matrix(left[1:], right[1:])
    return left[0] * flops, left[0] * output


def _bmm(shapes: list[Any], _: list[Any]) -> tuple[int, int]:
    return _batched(shapes[0], shapes[1])


def _baddbmm(shapes: list[Any], _: list[Any]) -> tuple[int, int]:
    return _batched(shapes[1], shapes[2])


def _ints(value: Any) -> list[int]:
    found = msgspec.json.decode(value) if isinstance(value, str) else value
    return [int(item) for item in found]


def _convolution(shapes: list[Any], inputs: list[Any]) -> tuple[int, int]:
    """aten::convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)."""
    data, weight = shapes[0], shapes[1]
    stride, padding, dilation = _ints(inputs[3]), _ints(inputs[4]), _ints(inputs[5])
    transposed, extra = str(inputs[6]) == "True", _ints(inputs[7])
    space, kernel = data[2:], weight[2:]
    axes = range(len(kernel))
    if transposed:
        # Every input element meets the whole kernel.
        out = [
            (space[i] - 1) * stride[i] - 2 * padding[i] + dilation[i] * (kernel[i] - 1) + extra[i] + 1
            for i in axes
        ]
        channels = weight[1] * int(inputs[8])
        flops = 2 * _numel(data) * weight[1] * math.prod(kernel)
    else:
        out = [(space[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in axes]
        channels = weight[0]
        flops = 2 * data[0] * channels * math.prod(out) * weight[1] * math.prod(kernel)
    return flops, data[0] * channels * math.prod(out)


def _convolution_backward(shapes: list[Any], inputs: list[Any]) -> tuple[int, int]:
    """aten::convolution_backward(grad, input, weight, bias sizes, stride, …, groups, output_mask)."""
    grad, data, weight = shapes[0], shapes[1], shapes[2]
    transposed = str(inputs[7]) == "True"
    once = 2 * (_numel(data) if transposed else _numel(grad)) * weight[1] * math.prod(weight[2:])
    mask = str(inputs[10]).strip("[]").split(",")
    wanted = [part.strip() == "True" for part in mask[:2]]
    return once * sum(wanted), sum(
        _numel(shape) for shape, want in zip((data, weight), wanted, strict=False) if want
    )


def _attention(shapes: list[Any], _: list[Any]) -> tuple[int, int]:
    """Query, key and value as [batch, heads, length, depth]."""
    query, key = shapes[0], shapes[1]
    batch, heads, length, depth = query
    return 4 * batch * heads * length * key[2] * depth, _numel(query)


def _attention_backward(shapes: list[Any], _: list[Any]) -> tuple[int, int]:
    _, query, key = shapes[0], shapes[1], shapes[2]
    batch, heads, length, depth = query
    return 10 * batch * heads * length * key[2] * depth, _numel(query) + 2 * _numel(key)


def _broadcast(shapes: list[Any]) -> int:
    found: Shape = []
    for shape in shapes:
        if not isinstance(shape, list) or not shape:
            continue
        _numel(shape)
        width = max(len(found), len(shape))
        left, right = [1] * (width - len(found)) + found, [1] * (width - len(shape)) + shape
        found = [b if a == 1 else a for a, b in zip(left, right, strict=True)]
    return math.prod(found) if found else 0


def _elementwise(shapes: list[Any], _: list[Any]) -> tuple[int, int]:
    count = _broadcast(shapes)
    return count, count


def _reduction(shapes: list[Any], _: list[Any]) -> tuple[int, int]:
    return _numel(shapes[0]), 0


_FORMULAS: dict[str, Callable[[list[Any], list[Any]], tuple[int, int]]] = {
    "mm": _mm,
    "_int_mm": _mm,
    "_scaled_mm": _mm,
    "addmm": _addmm,
    "addmm_": _addmm,
    "_addmm_activation": _addmm,
    "bmm": _bmm,
    "baddbmm": _baddbmm,
    "baddbmm_": _baddbmm,
    "convolution": _convolution,
    "convolution_backward": _convolution_backward,
    "_scaled_dot_product_flash_attention": _attention,
    "_scaled_dot_product_efficient_attention": _attention,
    "_scaled_dot_product_cudnn_attention": _attention,
    "_scaled_dot_product_flash_attention_backward": _attention_backward,
    "_scaled_dot_product_efficient_attention_backward": _attention_backward,
    "_scaled_dot_product_cudnn_attention_backward": _attention_backward,
}
