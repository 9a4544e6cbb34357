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
_SAME_BYTES = ("bitcast", "reshape")
_VIEWS = (*_SAME_BYTES, "get-tuple-element")
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
    whole = shape_bytes(value.shape) or 0
    total = 0
    for name in _names_of(value, inside):
        for user in (each for each in inside if name in each.operands):
            first = user.operands[0] == name
            if user.opcode == "dynamic-slice" and first:
                total += shape_bytes(user.shape) or 0
            elif user.opcode not in _VIEWS and not (user.opcode == _UPDATES and first):
                total += whole
    return min(total, whole)


def _names_of(value: Instruction, inside: Sequence[Instruction]) -> set[int]:
    """The value and what shows it under another name or shape, each once: a damaged file may have circles."""
    names, waiting = {value.id}, [value.id]
    while waiting:
        name = waiting.pop()
        fresh = {each.id for each in inside if each.opcode in _VIEWS and name in each.operands} - names
        names |= fresh
        waiting += fresh
    return names


def _written_bytes(root: Instruction | None, inside: Sequence[Instruction]) -> int:
    """What is written: a row where an array is updated in place."""
    known = {each.id: each for each in inside}
    waiting = [] if root is None else [root]
    seen: set[int] = set()
    total = 0
    while waiting:
        one = waiting.pop()
        if one.id in seen:
            continue
        seen.add(one.id)
        operands = [known[at] for at in one.operands if at in known]
        if one.opcode == "tuple" or (one.opcode in _SAME_BYTES and operands):
            waiting += operands
        elif one.opcode == _UPDATES and len(operands) > 1:
            total += shape_bytes(operands[1].shape) or 0
        else:
            total += shape_bytes(one.shape) or 0
    return total
