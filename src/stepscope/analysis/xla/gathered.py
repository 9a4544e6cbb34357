"""Rows that a compiled program gathers from a smaller table, and the products that are applied to nothing but them.

A value is made of gathered rows alone if it comes from a gather by ops that treat every row alike: products with weights, and
elementwise ops with vectors of weights. Another table of rows, such as that of positions, makes equal rows differ.

Sums, differences and concatenations of gathered rows with rows of the same table, such as the two ends of an edge, differ from each
other, too. But the next product is linear in them: it can be applied to the table's rows, and its results be gathered and added.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from stepscope.analysis.xla.hlo_module import Instruction, Module, Shape
from stepscope.analysis.xla.instruction_cost import shapes_text
from stepscope.registers.policy.useless_work import MASKED_PROGRAM_MOST, REPEATED_ROWS_LEAST

_PRODUCT = "matmul"
_CALLS = ("fusion", "call")
_RANDOM = ("rng", "rng-bit-generator", "iota")
_SAME = ("bitcast", "reshape", "transpose", "copy", "convert", "get-tuple-element")
_LINEAR = (*_SAME, "add", "subtract", "negate", "concatenate", "broadcast", "slice")


@dataclass
class Gathered:
    """The number of `rows` that come from a `table` of fewer; `inputs` are the rows and columns of what products get that need no other.

    `combined`: of several rows of the table each, by a fused kernel that is given operands of the shapes `by`.
    """

    rows: int
    table: int
    inputs: set[tuple[int, int]] = field(default_factory=set)
    combined: bool = False
    by: str | None = None


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
        start = _gather(module, one, operands) or _combined(module, one, operands)
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


def _combined(module: Module, one: Instruction, operands: Sequence[Instruction]) -> Gathered | None:
    """Of a fused kernel that gathers rows and adds, subtracts or joins rows of the same table: how many, and of how many."""
    if one.opcode != "fusion" or "gather" not in _opcodes(module, one) or not one.called:
        return None
    inside = {each.id: each for each in module.instructions(one.called[0])}
    used = {each for other in inside.values() for each in other.operands}
    roots = [each for each in inside.values() if each.id not in used and each.opcode != "parameter"]
    sources = _sources(inside, roots[0]) if len(roots) == 1 else None
    tables = {_matrix(inside[each].shape)[0] for each in sources or ()}
    if len(tables) != 1:
        return None
    (table,) = tables
    rows = _matrix(one.shape)[0]
    by = shapes_text(each.shape for each in operands)
    return Gathered(rows, table, combined=True, by=by) if rows >= REPEATED_ROWS_LEAST * table else None


def _sources(inside: dict[int, Instruction], root: Instruction) -> set[int] | None:
    """The parameters that the value is a linear function of; None where it is another. Indices of gathers choose, and do not count."""
    found, seen, waiting = set(), {root.id}, [root]
    while waiting:
        one = waiting.pop()
        if one.opcode == "parameter":
            found.add(one.id)
        elif one.opcode == "gather" or one.opcode in _LINEAR:
            read = one.operands[:1] if one.opcode == "gather" else one.operands
            fresh = [inside[each] for each in read if each in inside and each not in seen]
            seen |= {each.id for each in fresh}
            waiting += fresh
        else:
            return None
    return found


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
        if source.combined:
            return one.opcode in _SAME
        return not tables and not codes & {"scatter", *_RANDOM}
    inner = [_matrix(each.shape) for each in operands if each.id in made]
    weights = [each for each in tables if len(each.shape.sizes) == 2 and inner[0][1] in each.shape.sizes]
    if len(tables) != 1 or len(weights) != 1 or source.rows in weights[0].shape.sizes:
        return False
    source.inputs |= {each for each in inner if each[0] == source.rows}
    return not source.combined


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
