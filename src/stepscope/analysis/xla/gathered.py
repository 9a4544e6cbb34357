"""Rows that a compiled program gathers from a smaller table, and the products that are applied to nothing but them.

A value is made of gathered rows alone if it comes from a gather by ops that treat every row alike: products with weights, and
elementwise ops with vectors of weights. Another table of rows, such as that of positions, makes equal rows differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from stepscope.analysis.xla.hlo_module import Instruction, Module, Shape
from stepscope.registers.policy.useless_work import MASKED_PROGRAM_MOST, REPEATED_ROWS_LEAST

_PRODUCT = "matmul"
_CALLS = ("fusion", "call")
_RANDOM = ("rng", "rng-bit-generator", "iota")


@dataclass
class Gathered:
    """The number of `rows` that come from a `table` of fewer; `inputs` are the rows and columns of what products get that need no other."""

    rows: int
    table: int
    inputs: set[tuple[int, int]] = field(default_factory=set)


def gathered_rows(module: Module) -> list[Gathered]:
    """The gathers of the program whose rows products are applied to."""
    if sum(len(body) for body in module.bodies.values()) > MASKED_PROGRAM_MOST:
        return []
    known: dict[int, Instruction] = {}
    made: dict[int, Gathered] = {}
    found: list[Gathered] = []
    for one in module.in_order:
        known[one.id] = one
        operands = [known[each] for each in one.operands if each in known]
        start = _gather(module, one, operands)
        if start is not None:
            made[one.id] = start
            found.append(start)
            continue
        source = next((made[each.id] for each in operands if each.id in made), None)
        if source is not None and _treats_rows_alike(module, one, operands, made, source):
            made[one.id] = source
    return [each for each in found if each.inputs]


def _gather(module: Module, one: Instruction, operands: Iterable[Instruction]) -> Gathered | None:
    """Of a gather of rows, or a fused kernel that gathers: how many, and of how many."""
    if "gather" not in _opcodes(module, one):
        return None
    rows, columns = _matrix(one.shape)
    tables = {
        _matrix(each.shape) for each in operands if _is_table(each.shape) and _matrix(each.shape)[0] != rows
    }
    if len(tables) != 1 or columns < 2:
        return None
    ((table, width),) = tables
    is_repeated = width == columns and rows >= REPEATED_ROWS_LEAST * table
    return Gathered(rows, table) if is_repeated else None


def _treats_rows_alike(
    module: Module, one: Instruction, operands: list[Instruction], made: dict[int, Gathered], source: Gathered
) -> bool:
    """Whether the result has a row for each row, made of it and of weights alone; notes what products are given."""
    others = [each for each in operands if each.id not in made]
    tables = [each for each in others if _is_table(each.shape) or source.rows in each.shape.sizes]
    if source.rows not in {_matrix(each)[0] for each in one.shape.arrays()}:
        return False
    codes = _opcodes(module, one)
    if "dot" not in codes and _PRODUCT not in one.target:
        return not tables and not codes & {"scatter", *_RANDOM}
    inner = [_matrix(each.shape) for each in operands if each.id in made]
    weights = [each for each in tables if len(each.shape.sizes) == 2 and inner[0][1] in each.shape.sizes]
    if len(tables) != 1 or len(weights) != 1 or source.rows in weights[0].shape.sizes:
        return False
    source.inputs |= {each for each in inner if each[0] == source.rows}
    return True


def _opcodes(module: Module, one: Instruction) -> set[str]:
    """What it does, inside of a fused kernel as well."""
    if one.opcode not in _CALLS:
        return {one.opcode}
    return {each.opcode for called in one.called for each in module.instructions(called)}


def _is_table(shape: Shape) -> bool:
    return sum(size > 1 for size in shape.sizes) > 1


def _matrix(shape: Shape) -> tuple[int, int]:
    """An array as rows and columns; one of a single dimension has one column."""
    sizes = next((each.sizes for each in shape.arrays()), ())
    return (math.prod(sizes[:-1]), sizes[-1]) if len(sizes) > 1 else (math.prod(sizes), 1)
