"""What an instruction of a loop moves in one turn: of arrays of all turns, only the row of this one."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.analysis.xla.hlo_module import Instruction, Module
from stepscope.analysis.xla.sizes.touched_bytes import touched_bytes

# Their time does not follow from the bytes alone.
_MORE = frozenset(
    ("dot", "convolution", "custom-call", "fft", "sort", "scatter", "while", "conditional", "call", "fusion")
)


def turn_bytes(module: Module, one: Instruction, beside: Sequence[Instruction]) -> int | None:
    """Bytes that it reads and writes in a turn, `beside` the others of its computation; None where its time does not follow from them."""
    if one.opcode == "fusion" and one.called:
        if any(each.opcode in _MORE for each in module.instructions(one.called[0])):
            return None
    elif one.opcode in _MORE:
        return None
    return touched_bytes(module, one, {each.id: each for each in beside})
