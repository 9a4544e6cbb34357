"""Two sets of vectors that ops compare pair by pair: a broadcast of [N, 1, D] against [1, K, D], and a sum over D, as a matrix product gives.

What says so is the order of the ops: a difference that is squared, or a product, of two inputs that both lack an axis of the result, and
a sum of what has this shape over an axis that both have. Anything in between that does not go through a sum, such as an absolute
value, ends it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache

import msgspec

from stepscope.analysis.shapes import Shape, held_shapes, shapes_in
from stepscope.lazy import dataclass
from stepscope.registers.policy.useless_work import BROADCAST_SIDE_LEAST

_DIFFERENCES = ("aten::sub", "aten::rsub")
_ADDITION = "aten::add"
_PRODUCT = "aten::mul"
_DIVISION = "aten::div"
BEGINNING = (*_DIFFERENCES, _PRODUCT)
_POWER = "aten::pow"
_SQUARES = ("aten::square", _POWER)
_NORM = "aten::linalg_vector_norm"
_SUMS = ("aten::sum", "aten::mean", _NORM)
_KEPT = ("aten::neg", "aten::neg_", "aten::copy_", "aten::_to_copy", "aten::clone")
_TWO = ("2", "2.", "2.0")
Call = tuple[int, int, str, str | None, str | None, str | None]


@dataclass(frozen=True)
class Pairs:
    """`ops` make as many elements as `shape` has out of two smaller inputs, and add them up to `pairs`; `products` matrix products do the same.

    `squared`: of a difference, whose square is expanded.
    """

    ops: tuple[int, ...]
    shape: Shape
    pairs: int
    squared: bool
    products: int


@dataclass(frozen=True)
class _Begun:
    """A broadcast that no sum has ended yet; `shared` are the axes that both inputs have."""

    ops: tuple[int, ...]
    shape: Shape
    shared: frozenset[int]
    is_difference: bool
    is_squared: bool = False
    products: int = 1


def pairs_of(calls: Iterable[Call]) -> list[Pairs]:
    """Of the calls of a forward pass that launch work themselves (thread, event, name, shapes, strides, concrete inputs), in their order.

    An array of that shape that other ops are given, too, may be needed as it is: such shapes are left out.
    """
    found: list[Pairs] = []
    others: set[Shape] = set()
    thread, begun = None, None
    for track, event, name, text, strides, inputs in calls:
        if track != thread:
            others |= _left_open(begun)
            thread, begun = track, None
        given = shapes_in(text)
        base = name if name in _KEPT else name.removesuffix("_")
        started = _begin(event, base, text, strides)
        if started is not None:
            others |= _left_open(begun)
            begun = started
        elif begun is None or begun.shape not in given:
            others.update(given)
        else:
            following = _followed(begun, event, base, given, _concrete(inputs))
            if isinstance(following, Pairs):
                found.append(following)
            elif following is None:
                others.add(begun.shape)
            begun = following if isinstance(following, _Begun) else None
    others |= _left_open(begun)
    return [each for each in found if each.shape not in others]


def _left_open(begun: _Begun | None) -> set[Shape]:
    """The shape of a broadcast that no sum ends: something else is done with it."""
    return {begun.shape} if begun is not None else set()


def may_begin(name: str, text: str | None, strides: str | None) -> bool:
    """Whether the op broadcasts two inputs."""
    return _begin(0, name, text, strides) is not None


def _begin(event: int, name: str, text: str | None, strides: str | None) -> _Begun | None:
    """Of a difference or a product of two inputs that are both much smaller than the result."""
    if name not in BEGINNING:
        return None
    sides = held_shapes(text, strides)[:2]
    if len(sides) < 2 or min(len(side) for side in sides) < 2:
        return None
    rank = max(len(side) for side in sides)
    one, other = ((1,) * (rank - len(side)) + side for side in sides)
    shape = tuple(max(pair) for pair in zip(one, other, strict=True))
    largest = max(math.prod(one), math.prod(other))
    if not 0 < largest * BROADCAST_SIDE_LEAST <= math.prod(shape):
        return None
    shared = frozenset(axis for axis in range(rank) if one[axis] == other[axis] > 1)
    return _Begun((event,), shape, shared, name != _PRODUCT)


def _followed(
    begun: _Begun, event: int, name: str, given: Sequence[Shape], inputs: Sequence[str]
) -> Pairs | _Begun | None:
    """What an op makes of a broadcast that it is given; None where no matrix product does."""
    begun = replace(begun, ops=(*begun.ops, event))
    if name in _SUMS:
        return _ended(begun, name, given, inputs)
    if name in _KEPT:
        return begun
    factor = next((shape for shape in given[:2] if shape != begun.shape), begun.shape)
    if name in _SQUARES or (name == _PRODUCT and factor == begun.shape):
        exponent = inputs[1] if name == _POWER and len(inputs) > 1 else _TWO[0]
        expands = begun.is_difference and not begun.is_squared and exponent in _TWO
        return replace(begun, is_squared=True) if expands else None
    if not factor and name in (_PRODUCT, _DIVISION, _ADDITION, *_DIFFERENCES):
        return begun
    if name in (_PRODUCT, _DIVISION) and _is_small(factor, begun.shape):
        return replace(begun, products=begun.products + 1)
    return None


def _is_small(factor: Shape, shape: Shape) -> bool:
    """Whether it lacks axes of the broadcast."""
    return math.prod(factor) * BROADCAST_SIDE_LEAST <= math.prod(shape)


def _ended(begun: _Begun, name: str, given: Sequence[Shape], inputs: Sequence[str]) -> Pairs | None:
    """By a sum over an axis that both inputs have; of a difference only after its square, or as its norm."""
    place = 1
    if name == _NORM:
        if begun.is_squared or not begun.is_difference or len(inputs) < 2 or inputs[1] not in _TWO:
            return None
        place = 2
    elif begun.is_difference and not begun.is_squared:
        return None
    axes = _axes(inputs[place] if len(inputs) > place else "", len(begun.shape))
    summed = math.prod(begun.shape[axis] for axis in axes)
    if not axes <= begun.shared or summed < BROADCAST_SIDE_LEAST:
        return None
    pairs = math.prod(begun.shape) // summed
    return Pairs(begun.ops, begun.shape, pairs, begun.is_difference, begun.products)


def _axes(text: str, rank: int) -> frozenset[int]:
    """The axes of a sum; none where they are not recorded."""
    try:
        found = msgspec.json.decode(text, type=list[int])
    except (msgspec.DecodeError, ValueError):
        return frozenset()
    return frozenset(axis % rank for axis in found if -rank <= axis < rank)


@cache
def _concrete(text: str | None) -> list[str]:
    try:
        return msgspec.json.decode(text or "[]", type=list[str])
    except (msgspec.DecodeError, ValueError):
        return []
