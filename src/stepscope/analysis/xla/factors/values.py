"""The values of one computation of a compiled program, looked through fused kernels and through what only changes shape or type."""

from __future__ import annotations

import struct

from stepscope.analysis.xla.hlo_module import Instruction, Module
from stepscope.analysis.xla.instruction_cost import FORMATS, is_matrix_product
from stepscope.analysis.xla.loops import root_of
from stepscope.formats.protobuf import fields
from stepscope.lazy import dataclass
from stepscope.registers.policy.useless_work import CALLS_DEEPEST, SAME_DEEPEST
from stepscope.trace.problems import Problems

MOVES = ("bitcast", "reshape", "copy", "convert", "transpose")
_PART = "get-tuple-element"
_WRITTEN = {"fp32": "<f", "fp64": "<d"}
Around = tuple[int, ...]


@dataclass(frozen=True)
class Value:
    """An instruction by its place: the fused kernels around it, from the outside in, and its own number."""

    around: Around
    number: int


class Values:
    """What makes each value of a computation."""

    def __init__(self, module: Module, computation: int) -> None:
        self.module = module
        self._bodies: dict[Around, dict[int, Instruction]] = {(): _by_id(module, computation)}

    def one(self, value: Value) -> Instruction:
        """The instruction that makes it."""
        return self._bodies[value.around][value.number]

    def read(self, value: Value) -> list[Value]:
        """What it is made of; nothing where part of that is not known."""
        found = [self.source(Value(value.around, number)) for number in self.one(value).operands]
        return [] if None in found else [each for each in found if each is not None]

    def source(self, value: Value) -> Value | None:
        """What makes the numbers, in whatever shape and type, inside of a fused kernel or before it."""
        body = self._bodies.get(value.around, {})
        for _ in range(sum(map(len, self._bodies.values())) + CALLS_DEEPEST):
            one = body.get(value.number)
            if one is None:
                return None
            before = self._before(value, one)
            if before is None:
                return value
            value, body = before, self._bodies.get(before.around, {})
        return None

    def are_same(self, first: Value, second: Value, depth: int = 0) -> bool:
        """Whether both are computed alike: a compiler computes what is cheap again in each kernel that reads it."""
        if first == second:
            return True
        one, other = self.one(first), self.one(second)
        if depth > SAME_DEEPEST or _kind(one) != _kind(other):
            return False
        if one.opcode == "constant":
            return number_of(one) is not None and number_of(one) == number_of(other)
        pairs = list(zip(self.read(first), self.read(second), strict=False))
        is_known = len(pairs) == len(one.operands) == len(other.operands) > 0
        return is_known and all(self.are_same(*pair, depth + 1) for pair in pairs)

    def _before(self, value: Value, one: Instruction) -> Value | None:
        """The value that this one is, under another name or shape; None where it is computed here, or given to the program."""
        if one.opcode == "parameter":
            return self._given(value, one)
        if one.opcode in MOVES and one.operands:
            return Value(value.around, one.operands[0])
        if one.opcode == "fusion" and len(value.around) < CALLS_DEEPEST:
            return self._inside(value, one, None)
        if one.opcode == _PART and one.operands:
            return self._part(value, one)
        return None

    def _given(self, value: Value, one: Instruction) -> Value | None:
        if not value.around:
            return None
        outside = value.around[:-1]
        kernel = self._bodies[outside][value.around[-1]]
        return (
            Value(outside, kernel.operands[one.parameter]) if one.parameter < len(kernel.operands) else None
        )

    def _part(self, value: Value, one: Instruction) -> Value | None:
        whole = self._bodies[value.around].get(one.operands[0])
        if whole is None:
            return None
        if whole.opcode == "tuple" and one.index < len(whole.operands):
            return Value(value.around, whole.operands[one.index])
        if whole.opcode == "fusion" and len(value.around) < CALLS_DEEPEST:
            return self._inside(Value(value.around, whole.id), whole, one.index)
        # A library's product has its result, and memory that it worked in.
        return Value(value.around, whole.id) if is_matrix_product(whole) and one.index == 0 else None

    def _inside(self, value: Value, kernel: Instruction, part: int | None) -> Value | None:
        """What the fused kernel computes, of several results one."""
        if not kernel.called:
            return None
        inside = (*value.around, value.number)
        if inside not in self._bodies:
            self._bodies[inside] = _by_id(self.module, kernel.called[0])
        root = root_of(list(self._bodies[inside].values()))
        if root is None:
            return None
        if root.opcode != "tuple":
            return Value(inside, root.id)
        return Value(inside, root.operands[part]) if part is not None and part < len(root.operands) else None


def number_of(one: Instruction) -> float | None:
    """The number that a constant is; None of other constants, of integers and of short floats."""
    written = _WRITTEN.get(FORMATS.get(one.element, "")) if one.opcode == "constant" else None
    if written is None or one.literal is None:
        return None
    values = [value for key, value in fields(one.literal, Problems()) if key != 1]  # the shape
    if len(values) != 1 or isinstance(values[0], int) or len(values[0]) != struct.calcsize(written):
        return None
    return float(struct.unpack(written, values[0])[0])


def _kind(one: Instruction) -> tuple[object, ...]:
    """What it does and with how much, apart from what it reads; of what else it may say, it is compared as it is written."""
    ways = (one.slices, one.config, one.direction, one.target, tuple(one.called))
    return (one.opcode, one.shape.element, one.shape.elements, tuple(one.dimensions), *ways)


def _by_id(module: Module, computation: int) -> dict[int, Instruction]:
    return {one.id: one for one in module.instructions(computation)}
