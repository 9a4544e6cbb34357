"""What moves data: concatenation, look-ups, pooling, resizing, losses of classes, and programs of compilers.

Of a table only the rows that are looked up count, each once: of n look-ups that fall evenly on V rows
V·(1 - e^(-n/V)) are different. Rows that a real text asks for repeat more often.
"""

from __future__ import annotations

import math

from stepscope.analysis.formulas.call import Call, Cost, Tensor, words
from stepscope.analysis.formulas.constants import BOOL, INDEX
from stepscope.analysis.formulas.products import Formula


def _joined(call: Call) -> Cost:
    """cat and stack: all members are read and written."""
    members = call.members(0)
    total = Tensor((sum(member.elements for member in members),), call.item)
    return Cost(0, members, [total])


def distinct_rows(rows: int, asked: int) -> int:
    """How many of the rows are expected among this number of look-ups."""
    return int(rows * -math.expm1(-asked / rows)) if rows else 0


def _looked_up(table: Tensor, axis: int, index: Tensor) -> Cost:
    rows = table.shape[axis]
    row = table.elements // max(1, rows)
    read = Tensor((distinct_rows(rows, index.elements), row), table.item)
    return Cost(0, [read, index], [Tensor((index.elements, row), table.item)])


def _embedding(call: Call) -> Cost:
    """embedding(weight, indices)."""
    return _looked_up(call.tensor(0), 0, call.tensor(1))


def _index_select(call: Call) -> Cost:
    """index_select(data, dimension, indices)."""
    return _looked_up(call.tensor(0), call.numbers(1)[0], call.tensor(2))


def _index(call: Call) -> Cost:
    """index(data, lists of indices): one list, for the first dimension; a mask has the shape of the data."""
    (indices,) = call.members(1)
    table = call.tensor(0)
    if indices.shape == table.shape[: len(indices.shape)] and len(indices.shape) > 1:
        raise ValueError("perhaps a mask")
    return _looked_up(table, 0, indices.with_items(INDEX))


def _index_put(call: Call) -> Cost:
    """index_put_(data, lists of indices, values)."""
    values = call.tensor(2)
    return Cost(values.elements, [values], [values])


def _embedding_backward(call: Call) -> Cost:
    """embedding_dense_backward(grad, indices, rows of the table, …): rows that were looked up get their sum."""
    grad, indices = call.tensor(0), call.tensor(1)
    made = distinct_rows(call.numbers(2)[0], indices.elements)
    return Cost(grad.elements, [grad, indices], [Tensor((made, grad.shape[-1]), grad.item)])


def _gather(call: Call) -> Cost:
    """gather(data, dimension, index). An index that repeats one place along whole rows is often a view of one column."""
    data, index = call.tensor(0), call.tensor(2)
    taken = Tensor((min(data.elements, index.elements),), data.item)
    is_view = len(index.shape) > 1 and index.shape[-1] == data.shape[-1]
    read = Tensor(index.shape[:-1], index.item) if is_view else index
    return Cost(0, [taken, read], [index.with_items(data.item)])


def _scatter(call: Call) -> Cost:
    """scatter_(data, dimension, index, values): where a value goes is at least written."""
    data, index = call.tensor(0), call.tensor(2)
    place = len("ddi")
    values = [call.tensor(place)] if call.has_tensor(place) else []
    return Cost(index.elements, [index, *values], [Tensor((min(data.elements, index.elements),), data.item)])


def _class_loss(call: Call) -> Cost:
    """nll_loss_forward(log of shares, class of each row): one element a row is read."""
    data, classes = call.tensor(0), call.tensor(1)
    return Cost(classes.elements, [classes, classes.with_items(data.item)], [])


def _class_loss_backward(call: Call) -> Cost:
    """nll_loss_backward(grad, log of shares, class of each row, …): the zeros before it are an op of their own."""
    data, classes = call.tensor(1), call.tensor(2)
    return Cost(classes.elements, [classes], [classes.with_items(data.item)])


def _pooled(call: Call) -> Cost:
    """max_pool2d_with_indices(data, kernel, stride, padding, …) and avg_pool2d, whose stride may be its kernel."""
    data, kernel = call.tensor(0), call.numbers(1)
    stride = call.numbers(2) or kernel
    padding = call.numbers(len("dks")) or [0]
    axes = len(kernel)
    before, space = data.shape[:-axes], data.shape[-axes:]
    pads = padding * axes if len(padding) == 1 else padding
    out = [(size + 2 * pads[i] - kernel[i]) // stride[i] + 1 for i, size in enumerate(space)]
    made = Tensor((*before, *out), data.item)
    places = [made.with_items(INDEX)] if "indices" in call.name else []
    return Cost(made.elements * math.prod(kernel), [data], [made, *places])


def _pooled_backward(call: Call) -> Cost:
    """The gradient, places where there are any, and a tensor of the input's size."""
    grad, data = call.tensor(0), call.tensor(1)
    places = [grad.with_items(INDEX)] if "indices" in call.name else []
    return Cost(grad.elements, [grad, *places], [data])


def _resized(call: Call) -> Cost:
    """Adaptive pooling and upsampling(data, size of the result)."""
    data, size = call.tensor(0), call.numbers(1)
    made = Tensor((*data.shape[: -len(size)], *size), data.item)
    return Cost(max(data.elements, made.elements), [data], [made])


def _resized_backward(call: Call) -> Cost:
    """upsample_…_backward(grad, size of the result, size of the input)."""
    grad, size = call.tensor(0), call.numbers(2)
    return Cost(grad.elements, [grad], [Tensor(tuple(size), grad.item)])


def _ordered(call: Call) -> Cost:
    """sort: values and places."""
    data = call.tensor(0)
    return Cost(data.elements, [data], [data, data.with_items(INDEX)])


def _masked(call: Call) -> Cost:
    """nonzero: how many places are found depends on the data."""
    data = call.tensor(0)
    return Cost(data.elements, [data.with_items(data.item or BOOL)], [])


_KINDS = words("nearest1d nearest2d nearest3d linear1d bilinear2d trilinear3d bicubic2d")
_UPSAMPLED = [f"upsample_{kind}" for kind in _KINDS]

FORMULAS: dict[str, Formula] = {
    "cat": _joined,
    "_cat": _joined,
    "stack": _joined,
    "embedding": _embedding,
    "index_select": _index_select,
    "index": _index,
    "index_put_": _index_put,
    "_index_put_impl_": _index_put,
    "embedding_dense_backward": _embedding_backward,
    "gather": _gather,
    "scatter": _scatter,
    "scatter_": _scatter,
    "scatter_add": _scatter,
    "scatter_add_": _scatter,
    "index_add_": _scatter,
    "nll_loss_forward": _class_loss,
    "nll_loss_backward": _class_loss_backward,
    "max_pool2d_with_indices": _pooled,
    "max_pool3d_with_indices": _pooled,
    "max_pool2d_with_indices_backward": _pooled_backward,
    "avg_pool2d": _pooled,
    "avg_pool2d_backward": _pooled_backward,
    "_adaptive_avg_pool2d": _resized,
    "_adaptive_avg_pool2d_backward": _pooled_backward,
    "adaptive_max_pool2d": _resized,
    **dict.fromkeys(_UPSAMPLED, _resized),
    **{f"{name}_backward": _resized_backward for name in _UPSAMPLED},
    "sort": _ordered,
    "nonzero": _masked,
}
