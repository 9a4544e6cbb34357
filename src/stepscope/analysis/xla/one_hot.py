"""One-hot matrices in compiled programs, and the products that they are given to.

A matrix is one-hot if a program makes it by comparing positions with other numbers for equality. Compilers fuse that with what is
around it and split products into pieces: it is followed through types, shapes and fused kernels up to the product.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from stepscope.analysis.xla.hlo_module import Instruction, Module
from stepscope.analysis.xla.instruction_cost import shapes_text
from stepscope.registers.policy.useless_work import CALLS_DEEPEST, MASKED_PROGRAM_MOST, ONE_HOT_CLASSES_LEAST

_EQUAL = "EQ"
_SAME = ("convert", "bitcast", "reshape", "transpose", "copy", "get-tuple-element", "tuple")
_CALLS = ("fusion", "call")
_PRODUCT = "matmul"
# What a value is made of: positions along its last dimension, constants, or a one-hot matrix of so many classes.
_POSITIONS, _CONSTANT, _OTHER = "positions", "constant", 0
Value = int | str


@dataclass
class OneHot:
    """The instructions that make one-hot matrices or multiply by them, by the shapes of their operands; of products the rows and classes.

    `names`: of all of them.
    """

    making: set[str] = field(default_factory=set)
    products: dict[str, tuple[int, int]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)


def one_hot_work(module: Module) -> OneHot:
    """What the program does with one-hot matrices; only those that products are given count."""
    found = OneHot()
    if sum(len(body) for body in module.bodies.values()) <= MASKED_PROGRAM_MOST:
        _Flow(module, found).follow(module.entry, ())
    return found if found.products else OneHot()


class _Flow:
    """Follows one-hot matrices through a program and its fused kernels."""

    def __init__(self, module: Module, found: OneHot) -> None:
        self.module = module
        self.found = found
        self._multiplied: tuple[int, int] | None = (
            None  # rows and classes of what the current product was given
        )

    def follow(self, computation: int, given: Sequence[Value], depth: int = 0) -> Value:
        """What the computation returns: classes of a one-hot matrix, or what else its value is; `given` are its parameters."""
        values: dict[int, Value] = {}
        by_id: dict[int, Instruction] = {}
        last: Value = _OTHER
        for one in self.module.scheduled(computation):
            by_id[one.id] = one
            read = [by_id[each] for each in one.operands if each in by_id]
            last = values[one.id] = self._value(one, read, values, given, depth)
            if not depth:
                self._note(one, read, last)
        return last

    def _value(
        self,
        one: Instruction,
        read: list[Instruction],
        values: dict[int, Value],
        given: Sequence[Value],
        depth: int,
    ) -> Value:
        operands = [values[each.id] for each in read]
        if one.opcode == "parameter":
            return given[one.parameter] if one.parameter < len(given) else _OTHER
        if one.opcode == "constant":
            return _CONSTANT
        if one.opcode == "iota":
            return _POSITIONS if one.rank else _OTHER
        if one.opcode == "compare":
            return self._compared(one, operands)
        if one.opcode == "select":
            return operands[0] if all(each == _CONSTANT for each in operands[1:]) else _OTHER
        if (
            one.opcode == "pad"
        ):  # to a side that kernels of products like: some classes more that are never met
            return operands[0] if isinstance(operands[0], int) and operands[1:] == [_CONSTANT] else _OTHER
        if one.opcode == "dot" or _PRODUCT in one.target:
            self._multiply(read[:2], operands)
            return _OTHER
        if one.opcode in _CALLS and one.called and depth < CALLS_DEEPEST:
            return self.follow(one.called[0], operands, depth + 1)
        if one.opcode in (*_SAME, "broadcast") and operands:
            return operands[0] if one.opcode in _SAME or isinstance(operands[0], str) else _OTHER
        return _OTHER

    def _compared(self, one: Instruction, operands: Iterable[Value]) -> Value:
        """A row for each number, with a one at its place: as many columns as there are positions."""
        is_one_hot = one.direction == _EQUAL and set(operands) == {_POSITIONS, _OTHER}
        classes = one.shape.sizes[-1] if one.rank > 1 else 0
        return classes if is_one_hot and classes >= ONE_HOT_CLASSES_LEAST else _OTHER

    def _multiply(self, read: Iterable[Instruction], operands: Iterable[Value]) -> None:
        for each, classes in zip(read, operands, strict=False):
            if isinstance(classes, int) and classes:
                self._multiplied = (each.shape.elements // classes, classes)

    def _note(self, one: Instruction, read: Iterable[Instruction], made: Value) -> None:
        """Notes what of the program itself, each a kernel, multiplies by a one-hot matrix or makes one."""
        text, multiplied = shapes_text(each.shape for each in read), self._multiplied
        self._multiplied = None
        if text is None:
            return
        if multiplied:
            self.found.products[text] = multiplied
            self.found.names.add(one.name)
        elif isinstance(made, int) and made and (one.opcode not in _SAME or one.opcode == "convert"):
            self.found.making.add(text)
            self.found.names.add(one.name)
