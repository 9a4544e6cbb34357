"""How many bytes an instruction of a compiled program reads and writes at least.

Every operand is read once and every result written once, as far as they are touched: of an array that rows are picked from these rows,
and of one that is updated in place the rows that are written. A fusion reads of what it is given only what it needs for its result.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence

from stepscope.analysis.xla.hlo_module import TUPLE, Instruction, Module, Shape
from stepscope.analysis.xla.loops import root_of
from stepscope.analysis.xla.sizes.array_bytes import array_bits, bytes_of

# What runs inside them is recorded by itself: nothing is counted for them as well.
AROUND_OTHERS = ("while", "conditional", "call")
_LATER = ("-done", "-update")  # the start of what is waited for counts
_PICKS = ("slice", "dynamic-slice", "gather")
_JOINS = ("concatenate", "pad")
_UPDATES = ("dynamic-update-slice", "scatter")
_SAME = ("bitcast", "reshape", "tuple")


def touched_bytes(module: Module, one: Instruction, beside: Mapping[int, Instruction]) -> int | None:
    """Of one instruction among those of its computation; None where it is not known, or counted elsewhere."""
    if one.opcode in AROUND_OTHERS or one.opcode.endswith(_LATER):
        return None
    if one.opcode == "async-start":
        return None  # a part of a large array, most often: the shapes do not say how much is moved
    inside = module.instructions(one.called[0]) if one.opcode == "fusion" and one.called else []
    root = root_of(inside)
    if root is not None:
        return _Region(inside, [each for each in inside if each.opcode == "parameter"]).bytes(root)
    given = [beside[number] for number in dict.fromkeys(one.operands) if number in beside]
    return _Region([one], given).bytes(one)


class _Region:
    """Instructions that run as one, and what they are given."""

    def __init__(self, working: Sequence[Instruction], given: Sequence[Instruction]) -> None:
        self._working = working
        self._given = {one.id: one for one in given}
        self._known = self._given | {one.id: one for one in working}

    def bytes(self, root: Instruction) -> int | None:
        """What they read of what they are given, and what they write for this result."""
        results = self._results(root)
        needs = self._needs({one.id for one in results})
        bits: list[int | None] = []
        for one in self._given.values():
            is_array = one.element != TUPLE
            bits += [
                array_bits(each, needs.get(one.id, 0) if is_array else None) for each in one.shape.arrays()
            ]
        for one in results:
            bits += map(array_bits, self._written(one))
        known = [each for each in bits if each is not None]
        return bytes_of(sum(known)) if len(known) == len(bits) else None

    def _results(self, root: Instruction) -> list[Instruction]:
        """What makes the results, whatever shape they have then, each once: a damaged file may have circles."""
        found: list[Instruction] = []
        waiting, seen = [root], set()
        while waiting:
            one = waiting.pop()
            if one.id in seen:
                continue
            seen.add(one.id)
            operands = [self._known[number] for number in one.operands if number in self._known]
            if one.opcode in _SAME and operands and len(self._working) > 1:
                waiting += operands
            else:
                found.append(one)
        return found

    def _needs(self, results: Container[int]) -> dict[int, int]:
        """How many elements of each instruction the results need. Operands come before those that use them."""
        needs: dict[int, int] = {}
        for one in reversed(self._working):
            is_result = one.id in results
            wanted = one.shape.elements if is_result else min(needs.get(one.id, 0), one.shape.elements)
            kept = _updated(one) if is_result and self._is_in_place(one) else 0
            for place, number in enumerate(one.operands if wanted else ()):
                whole = self._known[number].shape.elements if number in self._known else 0
                asked = _asked(one, place, wanted, whole) if place >= kept else 0
                needs[number] = min(whole, needs.get(number, 0) + asked)
        return needs

    def _is_in_place(self, one: Instruction) -> bool:
        """Whether it writes into an array that is given, and not into one that is made here, such as zeros."""
        at = one.operands[0] if one.opcode in _UPDATES and one.operands else None
        for _ in self._working:
            source = self._known.get(at) if at is not None and at not in self._given else None
            if source is None or source.opcode not in (*_SAME, *_UPDATES) or not source.operands:
                break
            at = source.operands[0]
        return at in self._given

    def _written(self, one: Instruction) -> list[Shape]:
        """The arrays that an instruction writes: of those that it updates the parts that are new."""
        arrays = list(one.shape.arrays())
        if self._is_in_place(one):
            first = 1 if one.opcode == "dynamic-update-slice" else _updated(one) + 1
            fresh = [self._known[at].shape for at in one.operands[first:] if at in self._known]
            pairs = zip(fresh, arrays, strict=False)
            return [min(pair, key=lambda shape: shape.elements) for pair in pairs]
        if one.opcode == "copy-start":
            return arrays[:1]
        if one.opcode.endswith("-start") and one.opcode != "all-reduce-start":
            return list(one.shape.parts[1].arrays()) if len(one.shape.parts) > 1 else arrays
        last = arrays[-1] if len(arrays) > 1 else None
        if one.opcode == "custom-call" and last and array_bits(last) == 8 * math.prod(last.sizes[:1]):
            arrays.pop()  # what a library gets to work in: a row of bytes, most of which it may not touch
        return arrays


def _asked(one: Instruction, place: int, wanted: int, whole: int) -> int:
    """How many elements of an operand an instruction needs for `wanted` of its own."""
    made = one.shape.elements
    if (one.opcode in _PICKS and place == 0) or (one.opcode in _UPDATES and place < _updated(one)):
        return wanted
    if one.opcode in _JOINS:
        return max(0, wanted - max(0, made - whole))
    return -(-wanted * whole // max(1, made))


def _updated(one: Instruction) -> int:
    """How many of the first operands are updated; a scatter may have several arrays, then places, then what goes there."""
    return len(one.operands) // 2 if one.opcode == "scatter" else 1
