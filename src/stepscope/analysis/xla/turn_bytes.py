"""What an instruction of a loop moves in one turn: of arrays of all turns, only the row of this one."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.analysis.xla.hlo_module import Instruction, Module
from stepscope.analysis.xla.instruction_cost import shape_bytes
from stepscope.analysis.xla.loops import root_of

# Their time does not follow from the bytes alone.
_MORE = frozenset(
    ("dot", "convolution", "custom-call", "fft", "sort", "scatter", "while", "conditional", "call", "fusion")
)
_VIEWS = ("bitcast", "reshape", "get-tuple-element")
_UPDATES = "dynamic-update-slice"


def turn_bytes(module: Module, one: Instruction, beside: Sequence[Instruction]) -> int | None:
    """Bytes that it reads and writes in a turn, `beside` the others of its computation; None where its time does not follow from them."""
    if one.opcode == "fusion" and one.called:
        inside = module.instructions(one.called[0])
        if any(each.opcode in _MORE for each in inside):
            return None
        read = sum(_read_bytes(each, inside) for each in inside if each.opcode == "parameter")
        return read + _written_bytes(root_of(inside), inside)
    if one.opcode in _MORE:
        return None
    written = _written_bytes(one, beside)
    if one.opcode in ("copy", "dynamic-slice", _UPDATES):
        return 2 * written
    given = {each.id: each for each in beside}
    return written + sum(shape_bytes(given[at].shape) or 0 for at in one.operands if at in given)


def _read_bytes(value: Instruction, inside: Sequence[Instruction]) -> int:
    """What a fusion reads of something that it is given: rows where it only takes or replaces these."""
    total = 0
    for user in (each for each in inside if value.id in each.operands):
        first = user.operands[0] == value.id
        if user.opcode == "dynamic-slice" and first:
            total += shape_bytes(user.shape) or 0
        elif user.opcode in _VIEWS:
            total += _read_bytes(user, inside)
        elif not (user.opcode == _UPDATES and first):
            total += shape_bytes(value.shape) or 0
    return min(total, shape_bytes(value.shape) or 0)


def _written_bytes(root: Instruction | None, inside: Sequence[Instruction]) -> int:
    """What is written: a row where an array is updated in place."""
    known = {each.id: each for each in inside}
    if root is None:
        return 0
    operands = [known[at] for at in root.operands if at in known]
    if root.opcode == "tuple":
        return sum(_written_bytes(each, inside) for each in operands)
    if root.opcode in _VIEWS and operands:
        return min(shape_bytes(root.shape) or 0, _written_bytes(operands[0], inside))
    if root.opcode == _UPDATES and len(operands) > 1:
        return shape_bytes(operands[1].shape) or 0
    return shape_bytes(root.shape) or 0
