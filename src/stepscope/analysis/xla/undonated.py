"""Copies that a compiled program makes only because its arguments are not donated.

The caller may still need the array that it is given, so the program copies it as a whole before it writes some rows. A donated
array is written in place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from stepscope.analysis.xla.arguments import results_of
from stepscope.analysis.xla.hlo_module import Instruction, Module, Shape
from stepscope.analysis.xla.loops import root_of
from stepscope.analysis.xla.sizes.array_bytes import shape_bytes
from stepscope.lazy import dataclass
from stepscope.registers.policy.tables import XLA_CALL_DEPTH

_UPDATES = ("dynamic-update-slice", "scatter")
_ENTERED = ("fusion", "call", "while")
_AROUND = ("bitcast", "tuple", "get-tuple-element")


@dataclass(frozen=True)
class Undonated:
    """`names` of the copying instructions, the `arguments` that they copy, as the function calls them, and their bytes."""

    names: frozenset[str]
    arguments: tuple[str, ...]
    bytes: int


def undonated_copies(module: Module) -> Undonated | None:
    """Copies of arguments that are not donated, and that the program then updates in part and returns; None without any."""
    instructions = module.in_order
    by_id = {one.id: one for one in instructions}
    given = [(one, by_id[one.operands[0]]) for one in instructions if _copies_argument(one, by_id)]
    free = _results_without_memory(module)
    found = []
    for copy, argument in given:
        if argument.parameter in module.donated or not free[argument.shape]:
            continue
        at = _place_of_update(module, instructions, copy)
        if at is not None and not _is_read_from(instructions, at, argument, copy):
            found.append((copy, argument))
            free[argument.shape] -= 1
    if not found:
        return None
    return Undonated(
        frozenset(copy.name for copy, _ in found),
        tuple(dict.fromkeys(argument.op_name for _, argument in found)),
        sum(shape_bytes(copy.shape) or 0 for copy, _ in found),
    )


def _results_without_memory(module: Module) -> Counter[Shape]:
    """The results that take no argument's memory yet: JAX can use a donated array for one of its shape and type only."""
    return Counter(shape for at, shape in enumerate(results_of(module)) if at not in module.aliases)


def _copies_argument(one: Instruction, by_id: dict[int, Instruction]) -> bool:
    source = by_id.get(one.operands[0]) if one.opcode == "copy" and one.operands else None
    return source is not None and source.opcode == "parameter" and source.shape == one.shape


def _place_of_update(module: Module, instructions: Sequence[Instruction], copy: Instruction) -> int | None:
    """Where rows of the copy are first written: by an instruction, in a fused kernel, or in a loop; None if that is not returned."""
    reached, first = {copy.id}, None
    for at, one in enumerate(instructions):
        if reached.isdisjoint(one.operands):
            continue
        if one.opcode in _AROUND:
            reached.add(one.id)
        elif _updates(module, one, copy.shape):
            reached.add(one.id)
            first = at if first is None else first
    root = root_of(instructions)
    return first if root is not None and root.id in reached else None


def _is_read_from(
    instructions: Sequence[Instruction], at: int, argument: Instruction, copy: Instruction
) -> bool:
    """Whether the program needs the argument as it was from this place on: then it copies it all the same."""
    names = {argument.id}
    for place, one in enumerate(instructions):
        if one is copy or names.isdisjoint(one.operands):
            continue
        if one.opcode in _AROUND:
            names.add(one.id)
        elif place >= at:
            return True
    root = root_of(instructions)
    return root is not None and root.id in names


def _updates(module: Module, one: Instruction, shape: Shape, depth: int = 0) -> bool:
    """Whether the instruction writes a part of such an array."""
    if one.opcode in _UPDATES:
        return _is_like(one, shape)
    if one.opcode not in _ENTERED or depth > XLA_CALL_DEPTH:
        return False
    inside = (each for number in one.called for each in module.instructions(number))
    return any(_updates(module, each, shape, depth + 1) for each in inside)


def _is_like(one: Instruction, shape: Shape) -> bool:
    """Whether an array has that type and as many elements: fused kernels may see it in another shape."""
    return one.element == shape.element and one.shape.elements == shape.elements
