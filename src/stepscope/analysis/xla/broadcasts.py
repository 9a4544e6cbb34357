"""Fused kernels that compute all pairs of two sets of vectors by a broadcast, and add up over the vectors' axis.

What is added up is a polynomial of values that each lack an axis of the broadcast: a product, the square of a difference, or what
the gradient of one multiplies. Multiplied out, each of its terms is a matrix product, or less.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from stepscope.analysis.xla.hlo_module import Instruction, Module
from stepscope.analysis.xla.instruction_cost import FORMATS
from stepscope.analysis.xla.loops import root_of
from stepscope.lazy import dataclass
from stepscope.registers.policy.useless_work import (
    BROADCAST_SIDE_LEAST,
    MASKED_PROGRAM_MOST,
    TERMS_DEEPEST,
    TERMS_MOST,
)

_REDUCE = b"\x12\x06reduce"  # the opcode, as the file writes it
_MULTIPLY = b"\x12\x08multiply"
_SAME = ("convert", "copy", "negate", "bitcast", "reshape", "reduce-precision")
_JOINS = ("add", "subtract")
_SCALES = ("multiply", "divide")
_MOVES_AXES = ("bitcast", "reshape")
_SOURCES = ("parameter", "constant", "iota")
Axes = frozenset[int]
Term = tuple[int, ...]  # the factors, by instruction


@dataclass(frozen=True)
class AllPairs:
    """`elements` of the broadcast are added up to `pairs` numbers of this `precision`; `products` matrix products do the same."""

    elements: int
    pairs: int
    precision: str
    products: int


def broadcast_sums(module: Module) -> dict[str, AllPairs]:
    """By the names of the fusions that compute nothing else of that size."""
    if sum(len(body) for body in module.bodies.values()) > MASKED_PROGRAM_MOST:
        return {}
    inside = {
        number: found
        for number, body in module.bodies.items()
        if _may_have(body) and (found := _Body(module, number).all_pairs()) is not None
    }
    if not inside:
        return {}
    return {
        one.name: inside[one.called[0]]
        for number in module.bodies
        for one in module.instructions(number)
        if one.opcode == "fusion" and one.called and one.called[0] in inside
    }


def _may_have(body: Iterable[memoryview]) -> bool:
    """Without reading what cannot be one."""
    texts = [message.tobytes() for message in body]
    return all(any(opcode in text for text in texts) for opcode in (_REDUCE, _MULTIPLY))


class _Body:
    """The computation of a fused kernel."""

    def __init__(self, module: Module, number: int) -> None:
        self.module = module
        self.instructions = module.instructions(number)
        self.by_id = {one.id: one for one in self.instructions}
        self._axes: dict[int, Axes] = {}
        for one in self.instructions:  # operands come before what reads them
            self._axes[one.id] = self._changing(one)
        self._known: dict[int, list[Term] | None] = {}

    def all_pairs(self) -> AllPairs | None:
        """Of the sums over broadcasts; None where the kernel computes anything else of their size."""
        found: list[AllPairs] = []
        explained: set[int] = set()
        sums: set[int] = set()
        for one in self.instructions:
            if one.opcode == "reduce" and (made := self._of_sum(one)) is not None:
                pairs, passed = made
                found.append(pairs)
                sums.add(one.id)
                explained |= passed
        if not found:
            return None
        size = max(each.elements for each in found)
        others = (one for one in self.instructions if one.id not in explained and one.opcode not in _SOURCES)
        inside = explained - sums
        if any(
            self._size(one.id) * BROADCAST_SIDE_LEAST > size or not inside.isdisjoint(one.operands)
            for one in others
        ):
            return None
        pairs, products = (sum(getattr(each, name) for each in found) for name in ("pairs", "products"))
        return AllPairs(size, pairs, found[0].precision, products)

    def _of_sum(self, one: Instruction) -> tuple[AllPairs, set[int]] | None:
        """What a sum over a broadcast computes, and the instructions that it goes through."""
        source = self.by_id.get(one.operands[0]) if len(one.operands) == 2 else None
        if source is None or not self._adds(one):
            return None
        summed = frozenset(one.dimensions)
        passed: set[int] = {one.id}
        terms = self._terms(source.id, passed)
        if terms is None:
            return None
        sizes, elements = source.shape.sizes, source.shape.elements
        products = sum(self._is_product(term, summed, sizes) for term in set(terms))
        if (
            not products
            or math.prod(sizes[axis] for axis in summed if axis < len(sizes)) < BROADCAST_SIDE_LEAST
        ):
            return None
        return AllPairs(elements, one.shape.elements, FORMATS.get(source.element, ""), products), passed

    def _adds(self, one: Instruction) -> bool:
        """Whether what it reduces by is a sum."""
        root = root_of(self.module.instructions(one.called[0])) if one.called else None
        return root is not None and root.opcode == "add"

    def _terms(self, number: int, passed: set[int], depth: int = 0) -> list[Term] | None:
        """The value, multiplied out: each term by its factors, which all lack axes; None where it is more than that."""
        one = self.by_id[number]
        if self._size(number) * BROADCAST_SIDE_LEAST <= one.shape.elements:
            return [(number,)]
        passed.add(number)
        if number not in self._known:
            self._known[number] = None  # of a damaged file that goes in circles
            if depth < TERMS_DEEPEST:
                self._known[number] = self._multiplied_out(one, passed, depth + 1)
        return self._known[number]

    def _multiplied_out(self, one: Instruction, passed: set[int], depth: int) -> list[Term] | None:
        read = [each for each in one.operands if each in self.by_id]
        is_known = (one.opcode in _SAME and len(read) == 1) or (
            one.opcode in (*_JOINS, *_SCALES) and len(read) == 2
        )
        if not is_known or any(self.by_id[each].shape.sizes != one.shape.sizes for each in read):
            return None
        parts = [self._terms(each, passed, depth) for each in read]
        if len(parts) == 1:
            return parts[0]
        return _added(parts) if one.opcode in _JOINS else _multiplied(parts, one.opcode == "divide")

    def _is_product(self, term: Term, summed: Axes, sizes: Sequence[int]) -> bool:
        """Whether two of the factors have the summed axes, and each an axis that the other lacks."""
        having = [axes for factor in term if summed <= (axes := self._axes[factor])]
        return any(
            _size_of(sizes, one - other) >= BROADCAST_SIDE_LEAST
            and _size_of(sizes, other - one) >= BROADCAST_SIDE_LEAST
            for place, one in enumerate(having)
            for other in having[place + 1 :]
        )

    def _size(self, number: int) -> int:
        """Elements of the axes along which the value changes."""
        return _size_of(self.by_id[number].shape.sizes, self._axes[number])

    def _changing(self, one: Instruction) -> Axes:
        """The axes along which the value may change."""
        every = frozenset(axis for axis, size in enumerate(one.shape.sizes) if size > 1)
        read = [self.by_id[each] for each in one.operands if each in self._axes]
        if one.opcode == "broadcast" and len(read) == 1:
            given = self._axes[read[0].id]
            return frozenset(axis for at, axis in enumerate(one.dimensions) if at in given) & every
        if one.opcode == "transpose" and len(read) == 1:
            given = self._axes[read[0].id]
            return frozenset(at for at, axis in enumerate(one.dimensions) if axis in given) & every
        if one.opcode in _MOVES_AXES and len(read) == 1:
            return _moved(read[0].shape.sizes, one.shape.sizes, self._axes[read[0].id]) & every
        if not read or any(each.shape.sizes != one.shape.sizes for each in read):
            return every
        return frozenset().union(*(self._axes[each.id] for each in read)) & every


def _size_of(sizes: Sequence[int], axes: Iterable[int]) -> int:
    return math.prod(sizes[axis] for axis in axes if axis < len(sizes))


def _added(parts: Sequence[list[Term] | None]) -> list[Term] | None:
    found = [term for part in parts if part is not None for term in part]
    return None if None in parts or len(found) > TERMS_MOST else found


def _multiplied(parts: Sequence[list[Term] | None], divides: bool) -> list[Term] | None:
    """What is divided by is a factor as well, but no sum."""
    first, second = parts
    if first is None or second is None or len(first) * len(second) > TERMS_MOST:
        return None
    if divides and len(second) > 1:
        return None
    return [tuple(sorted((*one, *other))) for one in first for other in second]


def _moved(given: Sequence[int], sizes: Sequence[int], axes: Axes) -> Axes:
    """The axes of an array of other sizes along which it changes: its axes are grouped until both groups have as many elements."""
    found: set[int] = set()
    for before, after in _groups(given, sizes):
        if any(axis in axes for axis in before):
            found.update(after)
    return frozenset(found)


def _groups(given: Sequence[int], sizes: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    before, after = list(range(len(given))), list(range(len(sizes)))
    while before or after:
        one, other = before[:1], after[:1]
        before, after = before[1:], after[1:]
        while (left := _size_of(given, one)) != (right := _size_of(sizes, other)):
            if left < right and before:
                one.append(before.pop(0))
            elif left > right and after:
                other.append(after.pop(0))
            else:  # in another order, or a damaged file
                one, other, before, after = one + before, other + after, [], []
                break
        yield one, other
