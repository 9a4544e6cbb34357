"""Sorts of PyTorch of whose rows only the first or the last few entries are read.

The profile has no values, but shapes and what slices were asked for: after the sort, all that is given an array of its shape must be
a slice along the sorted axis, or something that passes the whole on, until the next sort of that shape. What came before the first
sort of a step is what makes the next one's input, and reads nothing of this one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

import msgspec

from stepscope.lazy import dataclass
from stepscope.registers.policy.useless_work import SORT_KEPT_MOST, SORT_ROW_LEAST

ARGSORT = "aten::argsort"
SORTS = ("aten::sort", ARGSORT)
_NEGATION = "aten::neg"
_SLICE, _NARROW, _SELECT, _FLIP = "aten::slice", "aten::narrow", "aten::select", "aten::flip"
_PASSES = ("aten::detach", "aten::alias", "aten::contiguous")
# They read what an index says of their first argument, which may be what was sorted, and all of the index.
_BY_INDEX = ("aten::gather", "aten::index", "aten::index_select", "aten::take_along_dim", "aten::take")
_INDEX_TYPES = frozenset(("long int", "long", "int64"))
_SELECTED = ("x", "dim", "index")
_CUT = ("x", "dim", "start", "end or length")
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Call:
    """A call of an op of PyTorch that no other such op makes."""

    op: int
    name: str
    shapes: str
    dtypes: str
    inputs: str


@dataclass(frozen=True)
class KeptSort:
    """`ops` sort an array of `shape` along `axis`, of whose entries `kept` at most are read."""

    ops: tuple[int, ...]
    shape: Shape
    axis: int
    kept: int
    dtype: str

    @property
    def length(self) -> int:
        """Entries of a row."""
        return self.shape[self.axis]


def sorted_shape(name: str, shapes: str, inputs: str) -> tuple[Shape, int] | None:
    """What a sort is given, and the axis along which it sorts."""
    first = next(iter(_shapes(shapes)), ())
    given = _texts(inputs)
    # sort(x, dim, descending), or with `stable` before dim; argsort alike.
    place = 1 if len(given) <= len(("x", "dim", "descending")) else 2
    if name not in SORTS or not first or not all(isinstance(size, int) for size in first):
        return None
    axis = _number(given[place] if len(given) > place else "", -1)
    shape = tuple(size for size in first if isinstance(size, int))
    return (shape, axis % len(shape)) if -len(shape) <= axis < len(shape) else None


def kept_sorts(calls: Sequence[Call]) -> Iterator[KeptSort]:
    """Of the calls of one thread in one step, in their order."""
    sorts = [
        (place, made)
        for place, one in enumerate(calls)
        if (made := sorted_shape(one.name, one.shapes, one.inputs))
    ]
    sorts = [(place, made) for place, made in sorts if made[0][made[1]] >= SORT_ROW_LEAST]
    by_shape: dict[Shape, list[tuple[int, int]]] = {}
    for place, (shape, axis) in sorts:
        by_shape.setdefault(shape, []).append((place, axis))
    for shape, mine in by_shape.items():
        places = [place for place, _ in mine]
        before = _making(calls[: places[0]], shape)
        for (place, axis), end in zip(mine, [*places[1:], len(calls)], strict=True):
            after = calls[place + 1 : end]
            after = _without_making(after, shape, before) if end < len(calls) else after
            found = _kept(calls[place], after, shape, axis)
            if found is not None:
                turned = place > 0 and calls[place - 1].name == _NEGATION and _takes(calls[place - 1], shape)
                ops = (calls[place - 1].op,) if turned else ()
                yield KeptSort((*ops, *found[0]), shape, axis, found[1], _dtype(calls[place], 0))


def _making(calls: Iterable[Call], shape: Shape) -> list[str]:
    return [one.name for one in calls if _takes(one, shape)]


def _without_making(calls: Sequence[Call], shape: Shape, before: list[str]) -> Sequence[Call]:
    """Without the last ones, if they are what makes the input of a sort."""
    mine = [place for place, one in enumerate(calls) if _takes(one, shape)]
    if not before or [calls[place].name for place in mine[-len(before) :]] != before:
        return calls
    return calls[: mine[-len(before)]]


def _kept(sort: Call, after: Iterable[Call], shape: Shape, axis: int) -> tuple[tuple[int, ...], int] | None:
    """The sort and what turns its result round, and how many entries of a row are read; None where more than a few are."""
    types = _INDEX_TYPES if sort.name == ARGSORT else _INDEX_TYPES | {_dtype(sort, 0)}
    axes, ops, kept = {shape: axis}, [sort.op], 0
    for one in after:
        given = _shapes(one.shapes)
        places = [place for place, each in enumerate(given) if _holds(each, axes)]
        # A list of arrays has no type of its own.
        if not any(_shape_of(given[place]) is None or _dtype(one, place) in (*types, "") for place in places):
            continue
        first = _shape_of(given[0])
        if (one.name in _BY_INDEX and places == [0]) or one.name in _PASSES:
            continue
        if places != [0] or first is None:
            return None
        mine = axes[first]
        if one.name == _FLIP:
            if _numbers(_texts(one.inputs)[1:2]) != [mine % len(first)] and len(first) > 1:
                return None
            ops.append(one.op)
            continue
        cut = _cut(one, first)
        if cut is None:
            return None
        along, start, end = cut
        if along != mine:
            if one.name == _SELECT:
                axes[first[:along] + first[along + 1 :]] = mine - (along < mine)
            elif end - start < first[along]:
                part = (*first[:along], end - start, *first[along + 1 :])
                axes[part] = mine
        elif end - start < first[mine]:
            reach = min(end, first[mine] - start)
            if reach > SORT_KEPT_MOST * first[mine]:
                return None
            kept = max(kept, reach)
    return (tuple(ops), kept) if kept else None


def _cut(one: Call, shape: Shape) -> tuple[int, int, int] | None:
    """The axis, and from where to where the op takes a part of what it is given."""
    given = _texts(one.inputs)
    if one.name not in (_SLICE, _NARROW, _SELECT) or len(given) < len(_SELECTED):
        return None
    _, dim, first, last = [*given, ""][: len(_CUT)]
    axis = _number(dim, 0)
    if not -len(shape) <= axis < len(shape):
        return None
    axis %= len(shape)
    size, start = shape[axis], _number(first, 0)
    start = max(0, min(size, start + size if start < 0 else start))
    if one.name == _SLICE:
        end = _number(last, size)
        end = max(start, min(size, end + size if end < 0 else end))
    else:
        end = start + (1 if one.name == _SELECT else _number(last, size))
    return axis, start, end


def _takes(one: Call, shape: Shape) -> bool:
    return any(_holds(each, {shape}) for each in _shapes(one.shapes))


def _holds(given: list[object], wanted: Iterable[Shape]) -> bool:
    """Whether the argument is an array of one of these shapes, or a list that has one."""
    shape = _shape_of(given)
    if shape is not None:
        return shape in wanted
    return any(isinstance(each, list) and _holds(each, wanted) for each in given)


def _shape_of(given: list[object]) -> Shape | None:
    shape = tuple(size for size in given if isinstance(size, int))
    return shape if len(shape) == len(given) else None


def _dtype(one: Call, place: int) -> str:
    types = _texts(one.dtypes)
    return types[place] if place < len(types) else ""


@cache
def _shapes(text: str) -> list[list[object]]:
    try:
        return msgspec.json.decode(text or "[]", type=list[list[object]])
    except (msgspec.DecodeError, ValueError):
        return []


@cache
def _texts(text: str) -> list[str]:
    try:
        return msgspec.json.decode(text or "[]", type=list[str])
    except (msgspec.DecodeError, ValueError):
        return []


def _number(text: str, default: int) -> int:
    try:
        return int(text)
    except ValueError:
        return default


def _numbers(texts: Sequence[str]) -> list[int]:
    try:
        return msgspec.json.decode(texts[0] if texts else "[]", type=list[int])
    except (msgspec.DecodeError, ValueError):
        return []
