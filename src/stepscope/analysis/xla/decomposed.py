"""Matrices that a compiled program decomposes again in every run, although nothing changes them.

The program is given the matrix as a parameter, no program that ran returns an array of its type and shape, and none of its size is
copied to the device: it was there before the first step. Or it is part of the code of the program.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from stepscope.analysis.xla.hlo_module import Instruction, Module, Shape
from stepscope.analysis.xla.instruction_cost import SILENT
from stepscope.analysis.xla.loops import Flow, Taint, root_of
from stepscope.analysis.xla.sizes.array_bytes import shape_bytes

_DECOMPOSES = re.compile(r"(?i)getrf|potrf|cholesky|geqrf|syev|gesvd|heev|hybrid_eig|lapack_.geev")
_SAME = ("bitcast", "reshape", "transpose", "copy", "convert")
_GIVEN = ("parameter", "constant")
# What is kept of an LU decomposition are its pivots: solving makes a permutation of them each time.
_SOLVES = "pivots_to_permutation"


def unchanged_decompositions(modules: Sequence[Module], copied: Collection[int]) -> list[frozenset[str]]:
    """For each program the instructions that need only such a matrix: what prepares it, the decomposition, and what its factors alone are read for.

    `copied` are the bytes of copies to the device. What solves with the factors needs right sides as well, and is not among them.
    """
    returned = {shape for one in modules for shape in _returned(one)}
    return [_of_program(module, returned, copied) for module in modules]


def _of_program(module: Module, returned: Collection[Shape], copied: Collection[int]) -> frozenset[str]:
    body = {one.id: one for one in module.instructions(module.entry)}
    parameters = [one.parameter for one in body.values() if one.opcode == "parameter"]
    found: set[int] = set()
    for one in body.values():
        way = _way_to_source(body, one) if _decomposes(one) else []
        if not way:
            continue
        source = way[-1]
        given = source.opcode == "parameter"
        if given and (source.shape in returned or shape_bytes(source.shape) in copied):
            continue
        others: dict[int, Taint] = {
            number: True for number in parameters if not given or number != source.parameter
        }
        changing, _ = Flow(module).forward(module.entry, others)
        after, _ = Flow(module, lambda each, root=one: each.id == root.id).forward(module.entry, {})  # type: ignore[misc]
        found |= {number for where, number in after - changing if where == module.entry}
        found |= {each.id for each in way[:-1]}
    names = (body[number] for number in found if body[number].opcode not in SILENT)
    return frozenset(one.name for one in names if _SOLVES not in one.target)


def _decomposes(one: Instruction) -> bool:
    return one.opcode == "cholesky" or (one.opcode == "custom-call" and bool(_DECOMPOSES.search(one.target)))


def _returned(module: Module) -> list[Shape]:
    """The arrays that the program returns."""
    root = root_of(module.instructions(module.entry))
    return list(root.shape.arrays()) if root is not None else []


def _way_to_source(body: dict[int, Instruction], one: Instruction) -> list[Instruction]:
    """From what the decomposition reads to the parameter or constant that it is, in another order at most; empty where the matrix is computed, or one of many."""
    way: list[Instruction] = []
    for _ in body:
        first = body.get(one.operands[0]) if one.operands else None
        if first is None:
            return []
        way.append(first)
        if first.opcode in _GIVEN:
            return way if len(first.shape.sizes) == 2 else []
        alone = first.opcode in _SAME or (first.opcode == "fusion" and len(first.operands) == 1)
        if not alone or first.shape.elements != body.get(first.operands[0], first).shape.elements:
            return []
        one = first
    return []
