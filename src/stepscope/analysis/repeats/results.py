"""How many elements the results of an op have, as far as its inputs say, which of these are weights, and whether they are drawn at random."""

from __future__ import annotations

import math
from collections.abc import Callable

from stepscope.analysis.repeats.kinds import (
    ATTENTION,
    BROADCAST,
    COUNTED,
    CREATED,
    CREATED_LIKE,
    DROPOUT,
    LIKE_FIRST,
    LOSS,
    RANDOM,
    RECURRENT,
    REDUCED,
    RRELU,
)
from stepscope.analysis.repeats.op_call import Op, Shape

_OFF = "False"
_ZERO = ("0", "0.", "0.0")
# Inputs that are weights, and with them the width of the result.
WEIGHTS: dict[str, tuple[int, ...]] = {
    "linear": (1, 2),
    "conv1d": (1, 2),
    "conv2d": (1, 2),
    "conv3d": (1, 2),
    "convolution": (1, 2),
    "conv_transpose1d": (1, 2),
    "conv_transpose2d": (1, 2),
    "layer_norm": (2, 3),
    "group_norm": (2, 3),
    "rms_norm": (2,),
    "batch_norm": (1, 2, 3, 4),
    "instance_norm": (1, 2, 3, 4),
    "embedding": (0,),
    "prelu": (1,),
    "_transformer_encoder_layer_fwd": tuple(range(1, 20)),
    "_native_multi_head_attention": tuple(range(3, 20)),
}


def is_random(op: Op) -> bool:
    """Whether each call of it returns something else."""
    if op.base in DROPOUT:
        return op.number_at(2) != _OFF and op.number_at(1) not in _ZERO
    if op.base == ATTENTION:
        return op.number_at(4) not in ("", *_ZERO)
    if op.base == RRELU:
        return op.number_at(3) != _OFF
    if op.base in RECURRENT:
        return _drops_between_layers(op)
    words = op.base.rpartition("::")[2].split("_")
    return (LOSS not in words and not RANDOM.isdisjoint(words)) or "_fused_dropout" in op.base


def _drops_between_layers(op: Op) -> bool:
    """Of a recurrent network that trains; its packed inputs have a place more. The share is its only number with a fraction."""
    shares = [each for each in op.numbers if "." in each]
    trains = op.numbers[6:8] if op.number_at(5) in shares else op.numbers[7:8]
    return trains[:1] != (_OFF,) and (not shares or any(each not in _ZERO for each in shares))


def result_sizes(op: Op) -> frozenset[int] | None:
    """Elements of each of the results; None where that is not known."""
    if op.is_in_place and op.tensors:
        return frozenset((op.tensors[0].size,))
    if LOSS in op.base:
        return frozenset((1,))
    rule = _RULES.get(op.base)
    found = rule(op) if rule is not None else None
    return None if found is None else frozenset(found)


def _like_first(op: Op) -> set[int] | None:
    return {op.tensors[0].size} if op.tensors else None


def _broadcast(op: Op) -> set[int] | None:
    if not op.tensors:
        return None
    if op.base in ("max", "min") and len(op.tensors) == 1:
        return _reduced(op)
    shapes = [each.shape for each in op.tensors]
    rank = max(len(shape) for shape in shapes)
    wide = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return {math.prod(max(sizes) if 0 not in sizes else 0 for sizes in zip(*wide, strict=True))}


def _created(op: Op) -> set[int] | None:
    sizes = op.list_at(0)
    if op.base == "eye" and sizes:
        return {sizes[0] * ((op.list_at(1) or sizes)[0])}
    if op.base == "randint":
        sizes = next((found for place in (2, 1) if (found := op.list_at(place)) and len(found) > 1), sizes)
    return None if sizes is None else {math.prod(sizes)}


def _created_like(op: Op) -> set[int] | None:
    sizes = op.list_at(1)
    return None if sizes is None else {math.prod(sizes)}


def _counted(op: Op) -> set[int] | None:
    given = [found[0] for place in range(3) if (found := op.list_at(place))]
    if op.base != "arange":
        return {found[0]} if (found := op.list_at(2)) else None
    if len(given) == 1 or (len(given) > 1 and op.list_at(1) is None):
        return {given[0]}
    if len(given) < 2:
        return None
    step = given[2] if len(given) > 2 and given[2] else 1
    return {max(0, -(-(given[1] - given[0]) // step))}


def _axes(op: Op, shape: Shape) -> set[int] | None:
    axes = op.list_at(1)
    if not axes or not shape:  # without axes, over all of them
        return None
    return {axis % len(shape) for axis in axes}


def _reduced(op: Op) -> set[int] | None:
    if not op.tensors:
        return None
    shape = op.tensors[0].shape
    axes = _axes(op, shape)
    if axes is None:
        return {1}
    return {math.prod(size for axis, size in enumerate(shape) if axis not in axes)}


def _linear(op: Op) -> set[int] | None:
    if len(op.tensors) < 2 or not op.tensors[0].shape:
        return None
    given, weight = (each.shape for each in op.tensors[:2])
    return {math.prod(given[:-1]) * weight[0]} if weight else None


def _product(op: Op) -> set[int] | None:
    sides = [each.shape for each in op.tensors if len(each.shape) > 1][-2:]
    if len(sides) < 2:
        return None
    one, other = sides
    batch = one[:-2] if math.prod(one[:-2]) >= math.prod(other[:-2]) else other[:-2]
    return {math.prod(batch) * one[-2] * other[-1]}


def _embedding(op: Op) -> set[int] | None:
    if len(op.tensors) < 2 or len(op.tensors[0].shape) != 2:
        return None
    return {op.tensors[1].size * op.tensors[0].shape[1]}


def _attention(op: Op) -> set[int] | None:
    if len(op.tensors) < 3 or not op.tensors[0].shape:
        return None
    query, _, value = (each.shape for each in op.tensors[:3])
    return {math.prod(query[:-1]) * value[-1]}


def _convolution(op: Op) -> set[int] | None:
    """Of one without transposition, whose stride, padding and dilation were recorded."""
    if len(op.tensors) < 2:
        return None
    given, weight = (each.shape for each in op.tensors[:2])
    spatial = len(weight) - 2
    numbers = [op.list_at(place) for place in (3, 4, 5)]
    if spatial < 1 or len(given) != len(weight) or any(each is None for each in numbers):
        return None
    stride, padding, dilation = (
        (each or [0]) * (spatial if len(each or [0]) == 1 else 1) for each in numbers
    )
    sides = [
        (size + 2 * pad - wide * (kernel - 1) - 1) // max(1, step) + 1
        for size, kernel, step, pad, wide in zip(
            given[2:], weight[2:], stride, padding, dilation, strict=False
        )
    ]
    return {math.prod(sides) * given[0] * weight[0]}


def _cat(op: Op) -> set[int] | None:
    return {sum(each.size for each in op.tensors)} if op.tensors else None


def _select(op: Op) -> set[int] | None:
    axis = op.list_at(1)
    if not op.tensors or not op.tensors[0].shape or not axis:
        return None
    shape = op.tensors[0].shape
    side = shape[axis[0] % len(shape)]
    return {op.tensors[0].size // max(1, side)}


def _unbind(op: Op) -> set[int] | None:
    return _select(op)


def _slice(op: Op) -> set[int] | None:
    given = [op.list_at(place) for place in range(1, 5)]
    if not op.tensors or not op.tensors[0].shape or not given[0]:
        return None
    shape = op.tensors[0].shape
    side = shape[given[0][0] % len(shape)]
    begin, end, step = ((each or [default])[0] for each, default in zip(given[1:], (0, side, 1), strict=True))
    begin, end = (min(side, each + side if each < 0 else each) for each in (begin, end))
    return {op.tensors[0].size // max(1, side) * max(0, -(-(end - begin) // max(1, step)))}


def _narrow(op: Op) -> set[int] | None:
    axis, length = op.list_at(1), op.list_at(3)
    if not op.tensors or not op.tensors[0].shape or not axis or not length:
        return None
    shape = op.tensors[0].shape
    return {op.tensors[0].size // max(1, shape[axis[0] % len(shape)]) * length[0]}


def _pieces(op: Op) -> set[int] | None:
    """Of `chunk`, which is given how many, and of `split`, which is given how long they are."""
    number, axis = op.list_at(1), op.list_at(2) or [0]
    if not op.tensors or not op.tensors[0].shape or not number:
        return None
    shape = op.tensors[0].shape
    side = shape[axis[0] % len(shape)]
    other = op.tensors[0].size // max(1, side)
    if len(number) > 1:
        return {other * length for length in number}
    length = -(-side // max(1, number[0])) if op.base.endswith("chunk") else number[0]
    return {other * length} | ({other * (side % length)} if length and side % length else set())


def _expand(op: Op) -> set[int] | None:
    sizes = op.list_at(1)
    if sizes is None or not op.tensors:
        return None
    shape = (1,) * (len(sizes) - len(op.tensors[0].shape)) + op.tensors[0].shape
    return {math.prod(old if new == -1 else new for new, old in zip(sizes, shape, strict=False))}


def _repeat(op: Op) -> set[int] | None:
    times = op.list_at(1)
    return None if times is None or not op.tensors else {op.tensors[0].size * math.prod(times)}


def _index_select(op: Op) -> set[int] | None:
    axis = op.list_at(1)
    if len(op.tensors) < 2 or not axis or not op.tensors[0].shape:
        return None
    shape = op.tensors[0].shape
    return {op.tensors[0].size // max(1, shape[axis[0] % len(shape)]) * op.tensors[1].size}


def _index(op: Op) -> set[int] | None:
    """By one array of indices along the first axis."""
    if len(op.tensors) != 2 or not op.tensors[0].shape:
        return None
    shape = op.tensors[0].shape
    return {op.tensors[0].size // max(1, shape[0]) * op.tensors[1].size}


def _gather(op: Op) -> set[int] | None:
    return {op.tensors[-1].size} if len(op.tensors) > 1 else None


def _interpolated(op: Op) -> set[int] | None:
    sizes = op.list_at(1)
    if not op.tensors or len(op.tensors[0].shape) < 3 or not sizes:
        return None
    return {math.prod(op.tensors[0].shape[:2]) * math.prod(sizes)}


def _outer(op: Op) -> set[int] | None:
    return {op.tensors[0].size * op.tensors[1].size} if len(op.tensors) > 1 else None


def _top(op: Op) -> set[int] | None:
    count, axis = op.list_at(1), op.list_at(2) or [-1]
    if not op.tensors or not op.tensors[0].shape or not count:
        return None
    shape = op.tensors[0].shape
    return {op.tensors[0].size // max(1, shape[axis[0] % len(shape)]) * count[0]}


_Rule = Callable[[Op], "set[int] | None"]
_RULES: dict[str, _Rule] = {
    **dict.fromkeys(LIKE_FIRST, _like_first),
    **dict.fromkeys(BROADCAST, _broadcast),
    **dict.fromkeys(CREATED, _created),
    **dict.fromkeys(CREATED_LIKE, _created_like),
    **dict.fromkeys(COUNTED, _counted),
    **dict.fromkeys(REDUCED, _reduced),
    **dict.fromkeys(("matmul", "mm", "bmm", "addmm", "baddbmm", "__matmul__"), _product),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "convolution"), _convolution),
    **dict.fromkeys(("cat", "concat", "concatenate", "stack", "hstack", "vstack"), _cat),
    **dict.fromkeys(("chunk", "split", "split_with_sizes", "unsafe_chunk", "unsafe_split"), _pieces),
    **dict.fromkeys(("expand",), _expand),
    **dict.fromkeys(("adaptive_avg_pool2d", "upsample_nearest2d", "upsample_bilinear2d"), _interpolated),
    "linear": _linear,
    "embedding": _embedding,
    ATTENTION: _attention,
    "select": _select,
    "unbind": _unbind,
    "slice": _slice,
    "narrow": _narrow,
    "repeat": _repeat,
    "index_select": _index_select,
    "index": _index,
    "gather": _gather,
    "take_along_dim": _gather,
    "outer": _outer,
    "topk": _top,
    "item": lambda _: {1},
    "_local_scalar_dense": lambda _: {1},
}
