"""Masks of samples in compiled programs: what attention ignores of each sample, by lengths or marks that the program is given.

A value is a mask if it depends on nothing but whole numbers or booleans that the program is given, constants and positions. It
is used where it decides about a table of positions by positions that a product makes, as attention scores are; a square
picture is not such a table. Comparing two such values with each other packs several samples into one sequence: that is not padding,
nor is a table of which positions see each other that the program is given as it is.
Random numbers also come from whole numbers, the key of a generator, but do not depend on samples: dropout and noise do not mask them.
"""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.analysis.xla.hlo_module import Instruction, Module
from stepscope.registers.policy.useless_work import CALLS_DEEPEST, CALLS_MOST, MASKED_PROGRAM_MOST

WHOLE_NUMBERS = frozenset(range(1, 10))  # booleans and whole numbers, signed or not
_BOOLEAN = 1
_DATA, _KNOWN, _MASK = range(3)
_CONSTANTS = ("constant", "iota", "partition-id", "replica-id")
_CALLS = ("fusion", "call", "while")
_NO_MASK = (
    "dot",
    "convolution",
    "gather",
    "custom-call",
    "scatter",
    "rng",
    "rng-bit-generator",
    "sort",
    "shift-left",  # generators rotate bits; divisions of lengths shift them to the right
)
_PRODUCT = "matmul", "gemm"
_FUSED_ATTENTION = "fmha"
_PADDED = b'"mask_type": "PADDING'
_FULL_SEQUENCES = 2  # a table of scores has the length twice
_QUERIES = 4  # dimensions
Value = int | list[int]


def padded_length(module: Module) -> int | None:
    """The length of sequences of which attention ignores a part, other for each sample; None where there is none."""
    if sum(len(body) for body in module.bodies.values()) > MASKED_PROGRAM_MOST:
        return None
    flow = _Flow(module)
    flow.follow(module.entry, [], 0)
    return None if flow.packs else flow.found()


class _Flow:
    """Follows what the program is given through calls, fused kernels and loops."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.length: int | None = None
        self.packs = False
        self._decided: set[int] = set()
        self._made: set[int] = set()
        self._calls_left = CALLS_MOST

    def found(self) -> int | None:
        """The length, once all is followed."""
        return max(self._decided & self._made, default=self.length)

    def follow(self, computation: int, given: Sequence[Value], depth: int) -> Value:
        """What the computation returns; its parameters are `given`, those of the entry are by their types."""
        values: dict[int, Value] = {}
        last: Value = _DATA
        by_id = {one.id: one for one in self.module.instructions(computation)}
        for one in self.module.instructions(computation):
            last = values[one.id] = self._value(one, values, given, depth)
            self._look(one, [by_id.get(operand) for operand in one.operands], values)
        return last

    def _value(self, one: Instruction, values: dict[int, Value], given: Sequence[Value], depth: int) -> Value:
        operands = [values.get(operand, _DATA) for operand in one.operands]
        if one.opcode == "parameter":
            return self._parameter(one, given, depth)
        if one.opcode in _CONSTANTS:
            return _KNOWN
        if one.opcode == "tuple":
            return [_one(each) for each in operands]
        if one.opcode == "get-tuple-element" and operands:
            whole = operands[0]
            return whole[one.index] if isinstance(whole, list) and one.index < len(whole) else _one(whole)
        if one.opcode in _CALLS and self._enters(one, depth):
            return self._called(one, operands, depth)
        return _DATA if one.opcode in _NO_MASK else _combined(operands)

    def _enters(self, one: Instruction, depth: int) -> bool:
        """Whether to look into what it calls: a damaged file may call without end."""
        self._calls_left -= 1
        return bool(one.called) and depth < CALLS_DEEPEST and self._calls_left > 0

    def _parameter(self, one: Instruction, given: Sequence[Value], depth: int) -> Value:
        if depth:
            return given[one.parameter] if one.parameter < len(given) else _DATA
        is_whole = one.element in WHOLE_NUMBERS and one.shape.sizes
        return _MASK if is_whole and not _is_table(one) else _DATA

    def _called(self, one: Instruction, operands: Sequence[Value], depth: int) -> Value:
        """A loop hands on what it is given: a mask stays what it is from turn to turn, unless a turn makes something else of it."""
        if one.opcode != "while":
            return self.follow(one.called[0], operands, depth + 1)
        given = operands[0] if operands else _DATA
        for body in one.called:
            made = self.follow(body, operands, depth + 1)
            given = _kept(given, made)
        return given

    def _look(
        self, one: Instruction, operands: Sequence[Instruction | None], values: dict[int, Value]
    ) -> None:
        kinds = [_one(values.get(operand, _DATA)) for operand in one.operands]
        if one.opcode == "compare" and kinds == [_MASK, _MASK]:
            self.packs = True
        elif one.opcode == "custom-call" and _FUSED_ATTENTION in one.target:
            if _PADDED in one.config and _MASK in kinds:
                self._attends(operands[0])
        elif _is_product(one):
            self._made.update(_lengths(one))
        elif one.element not in WHOLE_NUMBERS and (
            (one.opcode == "select" and kinds[:1] == [_MASK] and _DATA in kinds[1:])
            or (one.opcode == "add" and sorted(kinds) == [_DATA, _MASK])
        ):
            self._decided.update(_lengths(one))

    def _attends(self, queries: Instruction | None) -> None:
        """Queries are of samples, positions, heads and features; one position alone is that of a new token."""
        sizes = queries.shape.sizes if queries is not None else ()
        if len(sizes) == _QUERIES and sizes[1] > 1:
            self.length = sizes[1]


def _is_table(one: Instruction) -> bool:
    """Whether it says of all pairs of positions which see each other: a causal mask, documents in one sequence, the edges of a graph."""
    *samples, rows, columns = (0, *one.shape.sizes)
    is_known = len(samples) > 1 or one.element == _BOOLEAN  # as many samples as positions are no pairs
    return rows == columns > 1 and is_known


def _is_product(one: Instruction) -> bool:
    """Whether it multiplies matrices, itself or by a library."""
    return one.opcode == "dot" or (
        one.opcode == "custom-call" and any(each in one.target for each in _PRODUCT)
    )


def _lengths(one: Instruction) -> set[int]:
    """Of a table of scores the length; of anything else nothing."""
    sizes = next(iter(one.shape.arrays())).sizes
    if len(sizes) <= _FULL_SEQUENCES:
        return set()
    return {size for size in sizes if size > 1 and sizes.count(size) >= _FULL_SEQUENCES}


def _kept(given: Value, made: Value) -> Value:
    """What a loop hands on of what it is given: nothing that is data after a turn; its condition makes no such parts."""
    if not isinstance(given, list) or not isinstance(made, list):
        return given
    return [
        _DATA if _DATA in (_one(before), _one(after)) else _one(before)
        for before, after in zip(given, made, strict=False)
    ]


def _one(value: Value) -> int:
    return _combined(value) if isinstance(value, list) else value


def _combined(values: Sequence[Value]) -> int:
    """A mask, if nothing but masks and what is known went in, and a mask did."""
    kinds = [_one(value) for value in values]
    if not kinds or _DATA in kinds:
        return _DATA
    return max(kinds)
