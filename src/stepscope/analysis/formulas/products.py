"""Matrix products, convolutions, recurrent layers: a multiply-add counts as two.

mm, addmm, bmm, baddbmm: 2·M·N·K per product. Convolution: 2·outputs·(in channels / groups)·kernel volume; its backward
the same once for each gradient that is asked for. Recurrent layers: 2·time·batch·elements of the weight matrices.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from stepscope.analysis.formulas.call import Call, Cost, Tensor
from stepscope.analysis.formulas.constants import HALF

Formula = Callable[[Call], Cost]


def _matrix(left: Tensor, right: Tensor, added: list[Tensor]) -> Cost:
    (m, k), (k2, n) = left.shape, right.shape
    if k != k2:
        raise ValueError("shapes do not fit")
    return Cost(2 * m * n * k, [left, right, *added], [Tensor((m, n), left.item)])


def _batched(left: Tensor, right: Tensor, added: list[Tensor]) -> Cost:
    (batch, m, k), (_, k2, n) = left.shape, right.shape
    if k != k2:
        raise ValueError("shapes do not fit")
    return Cost(2 * batch * m * n * k, [left, right, *added], [Tensor((batch, m, n), left.item)])


def _mm(call: Call) -> Cost:
    return _matrix(call.tensor(0), call.tensor(1), [])


def _addmm(call: Call) -> Cost:
    added = [call.tensor(0)] if call.has_tensor(0) else []
    return _matrix(call.tensor(1), call.tensor(2), added)


def _scaled_mm(call: Call) -> Cost:
    """fp8 operands; the result is in 16 bits unless asked otherwise."""
    found = _mm(call)
    return found._replace(writes=[found.writes[0].with_items(HALF)])


def _bmm(call: Call) -> Cost:
    return _batched(call.tensor(0), call.tensor(1), [])


def _baddbmm(call: Call) -> Cost:
    return _batched(call.tensor(1), call.tensor(2), [call.tensor(0)])


def _vector(call: Call) -> Cost:
    """mv and dot: a matrix or a vector with a vector."""
    left, right = call.tensor(0), call.tensor(1)
    if left.shape[-1] != right.shape[0]:
        raise ValueError("shapes do not fit")
    return Cost(2 * left.elements, [left, right], [Tensor(left.shape[:-1], left.item)])


def _convolution(call: Call) -> Cost:
    """aten::convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)."""
    data, weight = call.tensor(0), call.tensor(1)
    stride, padding, dilation = (call.numbers(place) for place in _WINDOW)
    *_, transposed, extra, groups = _WHOLE
    space, kernel = data.shape[2:], weight.shape[2:]
    axes = range(len(kernel))
    if call.is_true(transposed):
        more = call.numbers(extra)
        # Every input element meets the whole kernel.
        out = [
            (space[i] - 1) * stride[i] - 2 * padding[i] + dilation[i] * (kernel[i] - 1) + more[i] + 1
            for i in axes
        ]
        channels = weight.shape[1] * call.numbers(groups)[0]
        flops = 2 * data.elements * weight.shape[1] * math.prod(kernel)
    else:
        out = [(space[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in axes]
        channels = weight.shape[0]
        flops = 2 * data.shape[0] * channels * math.prod(out) * weight.shape[1] * math.prod(kernel)
    result = Tensor((data.shape[0], channels, *out), data.item)
    return Cost(flops, call.tensors(), [result])


# Where aten::convolution has stride, padding, dilation; and with them whether it is transposed, padding of the output, groups.
_WINDOW = range(len("iwb"), len("iwbspd"))
_WHOLE = range(len("iwb"), len("iwbspdtog"))


def _convolution_backward(call: Call) -> Cost:
    """aten::convolution_backward(grad, input, weight, bias sizes, stride, …, groups, output_mask)."""
    grad, data, weight = call.tensor(0), call.tensor(1), call.tensor(2)
    transposed, mask = len("gdwbspd"), len("gdwbspdtog")
    once = (
        2
        * (data if call.is_true(transposed) else grad).elements
        * weight.shape[1]
        * math.prod(weight.shape[2:])
    )
    wanted = [part.strip() == "True" for part in call.get(mask).strip("[]").split(",")[:2]]
    made = [tensor for tensor, want in zip((data, weight), wanted, strict=False) if want]
    return Cost(once * sum(wanted), [grad, data, weight], made)


def _both_gradients(call: Call) -> Cost:
    """cudnn_convolution_backward(input, grad, weight, …) of old versions, for both gradients."""
    data, grad, weight = call.tensor(0), call.tensor(1), call.tensor(2)
    once = 2 * grad.elements * weight.shape[1] * math.prod(weight.shape[2:])
    return Cost(2 * once, [data, grad, weight], [data, weight])


def _recurrent(call: Call) -> Cost:
    """_cudnn_rnn(input, weights, …): every weight matrix meets every place and sample."""
    data, weights = call.tensor(0), call.members(1)
    matrices = [weight for weight in weights if len(weight.shape) > 1]
    if len(data.shape) <= 2 or not matrices:
        raise ValueError("no sequence")
    flops = 2 * data.shape[0] * data.shape[1] * sum(weight.elements for weight in matrices)
    item = data.item
    return Cost(flops, [data, *(weight.with_items(item) for weight in weights)], [data])


def _recurrent_backward(call: Call) -> Cost:
    """Gradients of the input and of the weights."""
    forward = _recurrent(call)
    return Cost(2 * forward.flops, [*forward.reads, *call.tensors(2)], forward.reads)


FORMULAS: dict[str, Formula] = {
    "mm": _mm,
    "_int_mm": _mm,
    "_scaled_mm": _scaled_mm,
    "addmm": _addmm,
    "addmm_": _addmm,
    "_addmm_activation": _addmm,
    "bmm": _bmm,
    "baddbmm": _baddbmm,
    "baddbmm_": _baddbmm,
    "mv": _vector,
    "dot": _vector,
    "vdot": _vector,
    "convolution": _convolution,
    "_convolution": _convolution,
    "convolution_overrideable": _convolution,
    "convolution_backward": _convolution_backward,
    "cudnn_convolution_backward": _both_gradients,
    "_cudnn_rnn": _recurrent,
    "_cudnn_rnn_backward": _recurrent_backward,
    "miopen_rnn": _recurrent,
    "miopen_rnn_backward": _recurrent_backward,
}
