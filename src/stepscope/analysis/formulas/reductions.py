"""Reductions, norms and softmax: the input is read once, however often a kernel reads it."""

from __future__ import annotations

import math

from stepscope.analysis.formulas.call import Call, Cost, Tensor, words
from stepscope.analysis.formulas.constants import (
    INDEX,
    MOMENTS,
    NORM_BACKWARD_FLOPS,
    NORM_FLOPS,
    SCALAR_TYPE_BYTES,
    SINGLE,
    SOFTMAX_BACKWARD_FLOPS,
    SOFTMAX_FLOPS,
)
from stepscope.analysis.formulas.products import Formula

_SUMS = words("""
sum mean amax amin prod var std logsumexp all any nansum count_nonzero aminmax var_mean std_mean median
""")
_SCANS = words("cumsum cumprod cummax cummin logcumsumexp _cumsum flip roll")
_LARGEST_WITH_PLACE = words("max min mode")


def _kept(call: Call, place: int = 1) -> int:
    """Elements that are left when the dimensions of this argument are gone; one where it has none."""
    data = call.tensor(0)
    try:
        gone = {axis % len(data.shape) for axis in call.numbers(place)}
    except (IndexError, TypeError, ValueError, ZeroDivisionError):
        return 1
    return math.prod(size for axis, size in enumerate(data.shape) if axis not in gone) if gone else 1


def _sum(call: Call) -> Cost:
    data = call.tensor(0)
    return Cost(data.elements, [data], [Tensor((_kept(call),), data.item)])


def _norm(call: Call) -> Cost:
    """norm(data, order, dimensions)."""
    data = call.tensor(0)
    return Cost(2 * data.elements, [data], [Tensor((_kept(call, 2),), data.item)])


def _place_of(call: Call) -> Cost:
    """argmax and its like write places alone."""
    data = call.tensor(0)
    return Cost(data.elements, [data], [Tensor((_kept(call),), INDEX)])


def _largest(call: Call) -> Cost:
    """max(data), max(data, dimension) with places, or max(one, other)."""
    data = call.tensor(0)
    if call.has_tensor(1):
        return Cost(data.elements, [data, call.tensor(1)], [data])
    kept = _kept(call)
    return Cost(
        data.elements, [data], [Tensor((kept,), data.item), Tensor((kept if kept > 1 else 0,), INDEX)]
    )


def _scan(call: Call) -> Cost:
    data = call.tensor(0)
    return Cost(data.elements, [data], [data])


def _softmax(call: Call) -> Cost:
    """_softmax(data, dimension, half_to_float)."""
    data = call.tensor(0)
    item = SINGLE if call.is_true(2) else data.item
    return Cost(SOFTMAX_FLOPS * data.elements, [data], [data.with_items(item)])


def _softmax_backward(call: Call) -> Cost:
    """_softmax_backward_data(grad, output, dimension, type of the input)."""
    grad, output = call.tensor(0), call.tensor(1)
    kind = call.get(len("god"))
    item = SCALAR_TYPE_BYTES.get(kind, grad.item) if kind else grad.item
    return Cost(SOFTMAX_BACKWARD_FLOPS * grad.elements, [grad, output], [grad.with_items(item)])


def _layer_norm(call: Call) -> Cost:
    """native_layer_norm(data, shape of a row, weight, bias, …), with the moments of each row."""
    data = call.tensor(0)
    rows = data.elements // max(1, math.prod(call.numbers(1)))
    moments = Tensor((MOMENTS, rows), SINGLE)
    return Cost(NORM_FLOPS * data.elements, call.tensors(), [data, moments])


def _norm_of_channels(call: Call) -> Cost:
    """Batch and group norm: the moments are small beside the data."""
    data = call.tensor(0)
    return Cost(NORM_FLOPS * data.elements, call.tensors(), [data])


def _norm_backward(call: Call) -> Cost:
    """Two tensors of the data's size are read (gradient and data), one is written, and the gradients of the weights."""
    read = call.tensors()
    largest = max(read, key=lambda tensor: tensor.elements)
    weights = [tensor for tensor in read if len(tensor.shape) == 1][:2]
    return Cost(NORM_BACKWARD_FLOPS * largest.elements, read, [largest, *weights])


FORMULAS: dict[str, Formula] = {
    **dict.fromkeys(_SUMS, _sum),
    **dict.fromkeys(_SCANS, _scan),
    **dict.fromkeys(_LARGEST_WITH_PLACE, _largest),
    "argmax": _place_of,
    "argmin": _place_of,
    "norm": _norm,
    "linalg_vector_norm": _norm,
    "_softmax": _softmax,
    "_log_softmax": _softmax,
    "_safe_softmax": _softmax,
    "_softmax_backward_data": _softmax_backward,
    "_log_softmax_backward_data": _softmax_backward,
    "native_layer_norm": _layer_norm,
    "_fused_rms_norm": _layer_norm,
    "native_layer_norm_backward": _norm_backward,
    "_fused_rms_norm_backward": _norm_backward,
    "native_group_norm": _norm_of_channels,
    "native_group_norm_backward": _norm_backward,
    "native_batch_norm": _norm_of_channels,
    "cudnn_batch_norm": _norm_of_channels,
    "miopen_batch_norm": _norm_of_channels,
    "_batch_norm_impl_index": _norm_of_channels,
    "_batch_norm_with_update": _norm_of_channels,
    "_native_batch_norm_legit": _norm_of_channels,
    "native_batch_norm_backward": _norm_backward,
    "batch_norm_backward": _norm_backward,
    "cudnn_batch_norm_backward": _norm_backward,
    "miopen_batch_norm_backward": _norm_backward,
}
