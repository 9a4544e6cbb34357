"""Copies that only repeat a tensor, for an attention or a product that could read it as it is.

Keys and values that several query heads share are the usual case: repeat_interleave, repeat, and expand followed by reshape or
contiguous all write one copy for each head. What says so is the order of the calls: an expansion to more elements than there are,
then a copy of exactly that size, and an op that takes it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from stepscope.lazy import dataclass
from stepscope.registers.policy.useless_work import EXPANDED_LEAST, READER_WITHIN_CALLS

_EXPANDS = "aten::expand"
_COPIES = "aten::copy_"
_SELECTS = "aten::index_select"
_ADDED = "aten::baddbmm"  # its first argument is what it adds to
_PRODUCTS = ("aten::bmm", _ADDED)
_ATTENTION = r"(?i)attention|attn"
_ATTENDED = ("query", "keys", "values")  # the first arguments
OPS = rf"^({'|'.join((_EXPANDS, _COPIES, _SELECTS, *_PRODUCTS))})$|{_ATTENTION}"
Shape = list[int]


@dataclass(frozen=True)
class Call:
    """An op: its event, thread, name, shapes and inputs as text, and `turn`, which of the program's own calls on that thread it is in."""

    event: int
    track: int
    name: str
    shapes: str | None
    inputs: str | None
    turn: int
    is_own: bool


@dataclass(frozen=True)
class Repeated:
    """A copy `times` as large as what it repeats, and the op that reads it; of what that reads and writes `left` would be left."""

    copy: int
    reader: int
    times: float
    elements: int
    left: float


@dataclass(frozen=True)
class _Copy:
    event: int
    times: float
    elements: int
    width: int
    turn: int


def repeating_copies(calls: Iterable[Call]) -> list[Repeated]:
    """Those of the calls, which are in order and of one thread after the other."""
    found: list[Repeated] = []
    waiting: list[_Copy] = []
    track, expanded = -1, None
    for call in calls:
        if call.track != track:
            track, expanded, waiting = call.track, None, []
        if call.name == _EXPANDS:
            expanded = _expanded(call) or expanded
        elif call.name == _COPIES:
            if expanded is not None and (copy := _copied(call, *expanded)) is not None:
                waiting.append(copy)
        elif call.name == _SELECTS:
            waiting += [copy for copy in (_selected(call),) if copy is not None]
        elif call.is_own or call.name in _PRODUCTS:
            waiting = [copy for copy in waiting if call.turn - copy.turn <= READER_WITHIN_CALLS]
            mine = _read(call, waiting)
            found += mine
            taken = {each.copy for each in mine}
            waiting = [copy for copy in waiting if copy.event not in taken]
    return found


def _expanded(call: Call) -> tuple[Shape, float, int] | None:
    """The sizes that a tensor is expanded to, how many times as many elements that is, and when."""
    given = _shapes(call.shapes)
    try:
        sizes = msgspec.json.decode(msgspec.json.decode(call.inputs or "", type=list[str])[1], type=Shape)
    except (msgspec.DecodeError, ValueError, IndexError):
        return None
    if not given or len(sizes) < len(given[0]):
        return None
    own = [1] * (len(sizes) - len(given[0])) + given[0]
    sizes = [side if size == -1 else size for size, side in zip(sizes, own, strict=True)]
    if min(sizes, default=0) < 1 or math.prod(own) < 1:
        return None
    return sizes, math.prod(sizes) / math.prod(own), call.turn


def _copied(call: Call, sizes: Shape, times: float, turn: int) -> _Copy | None:
    """The copy of what the program's last call expanded, or this one."""
    given = _shapes(call.shapes)
    if times < EXPANDED_LEAST or call.turn - turn > 1 or not given or given[0] != sizes:
        return None
    return _Copy(call.event, times, math.prod(sizes), sizes[-1], call.turn)


def _selected(call: Call) -> _Copy | None:
    """Rows picked several times; along the first dimension they are those of a table."""
    given = _shapes(call.shapes)
    try:
        dim = int(msgspec.json.decode(call.inputs or "", type=list[str])[1])
    except (msgspec.DecodeError, ValueError, IndexError):
        return None
    if len(given) <= 2 or not 0 < dim < len(given[0]) - 1 or len(given[2]) != 1 or min(given[0]) < 1:
        return None
    times = given[2][0] / given[0][dim]
    elements = round(math.prod(given[0]) * times)
    return _Copy(call.event, times, elements, given[0][-1], call.turn) if times >= EXPANDED_LEAST else None


def _read(call: Call, waiting: list[_Copy]) -> list[Repeated]:
    """The copies that an op takes as an input, either way round."""
    is_product = call.name in _PRODUCTS
    shapes = _shapes(call.shapes)
    first = int(call.name == _ADDED)
    given = shapes[first : first + 2] if is_product else shapes[: len(_ATTENDED)]
    if len(given) < 2 or any(len(shape) < 2 for shape in given):
        return []
    left, taken = list(waiting), []
    for shape in given if is_product else given[1:]:
        fitting = [copy for copy in left if copy.elements == math.prod(shape) and copy.width in shape[-2:]]
        taken += fitting[:1]
        left = [copy for copy in left if copy not in taken]
    moved = sum(math.prod(shape) for shape in given) + _written(given, is_product)
    saved = sum(copy.elements * (1 - 1 / copy.times) for copy in taken)
    return [Repeated(copy.event, call.event, copy.times, copy.elements, 1 - saved / moved) for copy in taken]


def _written(given: list[Shape], is_product: bool) -> int:
    """How many elements the op writes."""
    return math.prod(given[0][:-1]) * given[1][-1] if is_product else math.prod(given[0])


def _shapes(text: str | None) -> list[Shape]:
    try:
        return msgspec.json.decode(text or "[]", type=list[Shape])
    except (msgspec.DecodeError, ValueError):
        return []
