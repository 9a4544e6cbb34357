"""Elementwise ops: one FLOP for each element of the result; every input is read once in its own size, the result is written once.

Ops whose name ends with `_` write what they read. Comparisons write one byte an element.
"""

from __future__ import annotations

from stepscope.analysis.formulas.call import Call, Cost, Tensor, broadcast, widest, words
from stepscope.analysis.formulas.constants import BOOL, LSTM_STATES
from stepscope.analysis.formulas.products import Formula

# By how many tensors they take; what follows is a setting, or where the result goes.
_UNARY = words("""
abs acos acosh angle asin asinh atan atanh bitwise_not ceil celu clamp_max clamp_min conj_physical cos
cosh deg2rad digamma elu erf erfc erfinv exp exp2 expm1 floor frac gelu hardshrink hardsigmoid hardswish
hardtanh leaky_relu lgamma log log10 log1p log2 logit mish nan_to_num neg reciprocal relu relu6 round
rsqrt sgn sigmoid sign silu sin sinc sinh softplus softshrink sqrt square tan tanh threshold tril triu
trunc
""")
_BINARY = words("""
add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign div
floor_divide fmax fmin fmod gelu_backward hardshrink_backward hardsigmoid_backward hardswish_backward
hardtanh_backward heaviside huber_loss hypot leaky_relu_backward logaddexp logit_backward masked_fill
maximum minimum mish_backward mse_loss mul native_dropout_backward polar pow _prelu_kernel remainder rsub
sigmoid_backward silu_backward smooth_l1_loss softplus_backward softshrink_backward sub tanh_backward
threshold_backward true_divide xlogy _masked_scale
""")
_TERNARY = words("""
addcdiv addcmul binary_cross_entropy binary_cross_entropy_backward clamp clip elu_backward
huber_loss_backward lerp log_sigmoid_backward mse_loss_backward smooth_l1_loss_backward where
""")
_ARITY = {
    f"{name}{mark}": count
    for count, names in enumerate(((), _UNARY, _BINARY))
    for name in names
    for mark in ("", "_")
}
_COMPARISONS = words("""
eq ne gt lt ge le isnan isinf isfinite isposinf isneginf logical_and logical_or logical_not logical_xor
""")
_OVERWRITING = words("""
fill zero normal uniform bernoulli random exponential geometric log_normal cauchy
""")


def elementwise(call: Call) -> Cost:
    """Any op of which each result depends on one element of each input."""
    read = call.tensors(until=_ARITY.get(call.name))
    if not read:
        raise ValueError("no tensors")
    result = Tensor(broadcast(read), widest(read))
    return Cost(result.elements, read, [read[0] if call.name.endswith("_") else result])


def _comparison(call: Call) -> Cost:
    found = elementwise(call)
    return found if call.name.endswith("_") else found._replace(writes=[found.writes[0].with_items(BOOL)])


def _overwriting(call: Call) -> Cost:
    """What was there before is not read."""
    made = call.tensor(0)
    return Cost(made.elements, [], [made])


def _squared(call: Call) -> Cost:
    """addcmul_(moment, gradient, gradient): optimizers multiply a tensor with itself, which is read once."""
    found = elementwise(call)
    same = len(found.reads) > 2 and found.reads[1] == found.reads[2]
    return found._replace(reads=found.reads[:2]) if same else found


def _dropout(call: Call) -> Cost:
    """The result, and a mask of bytes."""
    data = call.tensor(0)
    return Cost(2 * data.elements, [data], [data, data.with_items(BOOL)])


def _gated(call: Call) -> Cost:
    """glu: half of the input gates the other half."""
    data = call.tensor(0)
    return Cost(data.elements, [data], [Tensor((data.elements // 2,), data.item)])


def _gated_backward(call: Call) -> Cost:
    grad, data = call.tensor(0), call.tensor(1)
    return Cost(2 * data.elements, [grad, data], [data])


def _lstm_cell(call: Call) -> Cost:
    """_thnn_fused_lstm_cell(input gates, hidden gates, cell, biases): states, and the gates for the backward pass."""
    gates, cell = call.tensor(0), call.tensor(2)
    return Cost(2 * gates.elements, call.tensors(), [*[cell] * LSTM_STATES, gates])


def _gru_cell(call: Call) -> Cost:
    gates, hidden = call.tensor(0), call.tensor(2)
    return Cost(2 * gates.elements, call.tensors(), [hidden, gates])


def _copy(call: Call) -> Cost:
    """copy_(target, source)."""
    return Cost(0, [call.tensor(1)], [call.tensor(0)])


FORMULAS: dict[str, Formula] = {
    **{f"{name}{mark}": elementwise for name in (*_UNARY, *_BINARY, *_TERNARY) for mark in ("", "_")},
    **{f"{name}{mark}": _comparison for name in _COMPARISONS for mark in ("", "_")},
    **{f"{name}_": _overwriting for name in _OVERWRITING},
    "addcmul_": _squared,
    "native_dropout": _dropout,
    "_fused_dropout": _dropout,
    "glu": _gated,
    "glu_backward": _gated_backward,
    "_thnn_fused_lstm_cell": _lstm_cell,
    "_thnn_fused_gru_cell": _gru_cell,
    "copy_": _copy,
}
