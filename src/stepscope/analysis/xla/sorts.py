"""Sorts of compiled programs of whose rows only the first or the last few entries are read.

What a sort returns is followed through copies, reversals, changes of sign or type and fused kernels: each reader must be a slice along
the sorted axis. A library's top-k that the compiler has turned into a sort and a slice keeps its name, and is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from stepscope.analysis.xla.hlo_module import Instruction, Module
from stepscope.analysis.xla.instruction_cost import FORMATS
from stepscope.analysis.xla.loops import root_of
from stepscope.formats.protobuf import fields
from stepscope.lazy import dataclass
from stepscope.registers.policy.useless_work import (
    CALLS_DEEPEST,
    MASKED_PROGRAM_MOST,
    SORT_KEPT_MOST,
    SORT_ROW_LEAST,
)
from stepscope.trace.problems import Problems

_SORT = "sort"
_OF_LIBRARY = "RadixSort"  # cub, which XLA calls for long rows
_TOP_K = ("top_k", "topk")
_ELEMENTWISE = ("copy", "convert", "negate")
_MOVES = ("bitcast", "reshape")
_TURNS = "reverse"
# What makes the operands of a sort and is not needed without it: positions, and what changes sign or order.
_MAKES = (*_ELEMENTWISE, *_MOVES, _TURNS, "iota", "parameter", "constant", "broadcast", "subtract", "add")
# A message of start, limit and stride for each dimension, as `slices` keeps them: the sign behind one may also be inside of a number.
_DIMENSION = re.compile(rb"((?:[\x08\x10\x18][\x80-\xff]*[\x00-\x7f])*);")


@dataclass(frozen=True)
class ProgramSort:
    """A sort of `rows` rows of `length` entries in a format, of which `kept` are read, in an array of `rank` axes; `names` of the instructions that a top-k makes unnecessary."""

    names: frozenset[str]
    rows: int
    length: int
    kept: int
    element: str
    rank: int


def program_sorts(module: Module) -> list[ProgramSort]:
    """Those of the program itself: how often a loop runs, and with it how long a top-k in it takes, is not always known."""
    if sum(len(body) for body in module.bodies.values()) > MASKED_PROGRAM_MOST:
        return []
    return list(_Body(module, module.entry).sorts())


class _Body:
    """A computation: who uses each of its values."""

    def __init__(self, module: Module, number: int) -> None:
        self.module = module
        self.by_id = {one.id: one for one in module.instructions(number)}
        self.root = root_of(module.instructions(number))
        self.users: dict[int, list[Instruction]] = {}
        for one in self.by_id.values():
            for operand in dict.fromkeys(one.operands):
                self.users.setdefault(operand, []).append(one)

    def sorts(self) -> Iterator[ProgramSort]:
        """Of which few entries are read."""
        for one in self.by_id.values():
            axis = _sorted_axis(one)
            keys = self.by_id.get(one.operands[0]) if axis is not None and one.operands else None
            if axis is None or keys is None or axis >= keys.rank or keys.shape.sizes[axis] < SORT_ROW_LEAST:
                continue
            names: set[str] = {one.name}
            length = keys.shape.sizes[axis]
            kept = self.kept(one, axis, length, names)
            if kept:
                names.update(self._making(one))
                element = FORMATS.get(keys.element, "")
                rows = max(1, keys.shape.elements // length)
                yield ProgramSort(frozenset(names), rows, length, kept, element, keys.rank)

    def kept(self, value: Instruction, axis: int, length: int, names: set[str], depth: int = 0) -> int | None:
        """How far the readers reach into a row; None where they read more, or are not known. `names` takes what passes on whole rows."""
        found = 0
        users = self.users.get(value.id, [])
        if depth > CALLS_DEEPEST or not users:
            return None
        for user in users:
            reach = self._read(user, value, axis, length, names, depth + 1)
            if reach is None:
                return None
            found = max(found, reach)
        return found

    def _read(
        self, user: Instruction, value: Instruction, axis: int, length: int, names: set[str], depth: int
    ) -> int | None:
        if user.opcode == "get-tuple-element":
            # Nothing reads positions that are not asked for, nor the memory that a library sorts in.
            is_read = bool(self.users.get(user.id)) or user is self.root
            return self.kept(user, axis, length, names, depth) if is_read else 0
        if user.opcode == "slice":
            return _reach(user, axis, length)
        if user.opcode in (*_ELEMENTWISE, _TURNS):
            names.add(user.name)
            return self.kept(user, axis, length, names, depth)
        if user.opcode in _MOVES:
            moved = _moved(value.shape.sizes, user.shape.sizes, axis)
            return None if moved is None else self.kept(user, moved, length, names, depth)
        if user.opcode == "fusion" and user.called:
            return self._read_inside(user, value, axis, length, names, depth)
        return None

    def _read_inside(
        self, user: Instruction, value: Instruction, axis: int, length: int, names: set[str], depth: int
    ) -> int | None:
        """By a fused kernel, which may only change sign or order of all of it, and is followed then."""
        inside = _Body(self.module, user.called[0])
        given = [
            one
            for one in inside.by_id.values()
            if one.opcode == "parameter"
            and one.parameter < len(user.operands)
            and user.operands[one.parameter] == value.id
        ]
        if user.shape.sizes == value.shape.sizes and _only_makes(inside.by_id.values()):
            names.add(user.name)
            return self.kept(user, axis, length, names, depth)
        reaches = [inside.kept(one, axis, length, set(), depth) for one in given]
        return None if not reaches or None in reaches else max(each or 0 for each in reaches)

    def _making(self, sort: Instruction) -> Iterator[str]:
        """What only the sort is given, and only makes positions, or changes the sign or the order of what it sorts."""
        for operand in sort.operands:
            one = self.by_id.get(operand)
            if one is None or len(self.users.get(one.id, [])) > 1:
                continue
            of_kernel = (
                self.module.instructions(one.called[0]) if one.opcode == "fusion" and one.called else None
            )
            if one.opcode in (*_ELEMENTWISE, _TURNS, "iota") or (of_kernel and _only_makes(of_kernel)):
                yield one.name


def _only_makes(inside: Iterable[Instruction]) -> bool:
    return all(one.opcode in _MAKES for one in inside)


def _sorted_axis(one: Instruction) -> int | None:
    """The axis that the instruction sorts along; None of anything but a sort, and of that of a top-k."""
    if any(name in one.op_name.rpartition("/")[2].lower() for name in _TOP_K):
        return None
    if one.opcode == _SORT:
        return one.dimensions[0] if one.dimensions else 0
    if one.opcode == "custom-call" and _OF_LIBRARY in one.target:
        first = next(one.shape.arrays(), one.shape)
        return len(first.sizes) - 1 if first.sizes else None
    return None


def _reach(one: Instruction, axis: int, length: int) -> int | None:
    """How far a slice reaches from the nearer end of a row; None where that is more than a few entries."""
    bounds = bounds_of(one.slices)
    if axis >= len(bounds):
        return None
    start, limit = bounds[axis]
    reach = min(limit, length - start)
    return reach if 0 < reach <= SORT_KEPT_MOST * length else None


def bounds_of(slices: bytes) -> list[tuple[int, int]]:
    """Where a slice starts and ends in each dimension."""
    found = []
    for message in _DIMENSION.findall(slices):
        ends = {
            key: value for key, value in fields(memoryview(message), Problems()) if isinstance(value, int)
        }
        found.append((ends.get(1, 0), ends.get(2, 0)))
    return found


def _moved(given: tuple[int, ...], sizes: tuple[int, ...], axis: int) -> int | None:
    """The axis where only axes of one entry come and go."""
    before = [place for place, size in enumerate(given) if size > 1]
    after = [place for place, size in enumerate(sizes) if size > 1]
    if [given[place] for place in before] != [sizes[place] for place in after] or axis not in before:
        return None
    return after[before.index(axis)]
