"""What a compiled program is given and what it returns: its arguments by number, with the names that the framework has for them."""

from __future__ import annotations

import re

from stepscope.analysis.xla.hlo_module import Instruction, Module, Shape
from stepscope.analysis.xla.instruction_cost import shape_bytes
from stepscope.lazy import dataclass

_ROOT = re.compile(r"^(args\[\d+\]|kwargs\['[^']*'\]|\w+)")
_COUNTING = (
    1,
    3,
    4,
    5,
    7,
    8,
    9,
)  # element types of tokens, indices and masks; weights may have 8 bits or less
_UNSIGNED = 8
_KEY_ELEMENTS = 4  # of a random key: two or four numbers


@dataclass(frozen=True)
class Argument:
    """`name` as the framework writes it, with the way to a leaf of a tree; empty where the program does not say."""

    number: int
    name: str
    shape: Shape

    @property
    def root(self) -> str:
        """The parameter of the function that it is, or is a leaf of."""
        found = _ROOT.match(self.name)
        return found[1] if found else self.name

    @property
    def may_be_weight(self) -> bool:
        """Whether it is a leaf of a tree of arrays (params['w'], state.layers[0]; not tokens or args[2]), with numbers as weights have."""
        return self.root != self.name and self.shape.element not in _COUNTING

    @property
    def is_small(self) -> bool:
        """Whether it is one number, such as a time, or a random key: programs are given another in each call."""
        is_key = self.shape.element == _UNSIGNED and self.shape.elements <= _KEY_ELEMENTS
        return self.shape.elements <= 1 or is_key

    @property
    def bytes(self) -> int:
        """Its size; 0 where that cannot be told."""
        return shape_bytes(self.shape) or 0


def arguments_of(module: Module) -> list[Argument]:
    """The arguments of the program, in order."""
    given = [one for one in module.instructions(module.entry) if one.opcode == "parameter"]
    found = [Argument(one.parameter, one.op_name, one.shape) for one in given]
    return sorted(found, key=lambda one: one.number)


def results_of(module: Module) -> list[Shape]:
    """The arrays that the program returns."""
    return [array for one in _unused(module) for array in one.shape.arrays()]


def _unused(module: Module) -> list[Instruction]:
    """What no other instruction uses: the result is among it. An argument may be returned as it is."""
    instructions = module.instructions(module.entry)
    used = {operand for one in instructions for operand in one.operands}
    free = [one for one in instructions if one.id not in used and one.opcode != "parameter"]
    return free or [one for one in instructions if one.id not in used]
