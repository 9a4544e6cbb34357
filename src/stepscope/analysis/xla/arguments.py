"""What a compiled program is given and what it returns: its arguments by number, with the names that the framework has for them."""

from __future__ import annotations

import re

from stepscope.analysis.xla.hlo_module import Instruction, Module, Shape
from stepscope.analysis.xla.instruction_cost import FORMATS
from stepscope.analysis.xla.sizes.array_bytes import shape_bytes
from stepscope.lazy import dataclass
from stepscope.registers.policy.repeated_work import SMALL_ARGUMENT_BYTES

_ROOT = re.compile(r"^(args\[\d+\]|kwargs\['[^']*'\]|\w+)")


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
        return self.root != self.name and self.shape.element in FORMATS

    @property
    def is_small(self) -> bool:
        """Whether it is one number, such as a time, or a random key: programs are given another in each call."""
        return self.shape.elements <= 1 or self.bytes <= SMALL_ARGUMENT_BYTES

    @property
    def bytes(self) -> int:
        """Its size; 0 where that is not known."""
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
