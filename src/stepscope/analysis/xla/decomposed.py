"""Matrices that a compiled program decomposes again in every run, although nothing changes them.

The program is given the matrix as a parameter, no program that ran returns an array of its type and shape, and none of its size is
copied to the device: it was there before the first step.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from stepscope.analysis.xla.hlo_module import Instruction, Module, Shape
from stepscope.analysis.xla.instruction_cost import Worker, shape_bytes
from stepscope.analysis.xla.loops import root_of

_DECOMPOSES = re.compile(r"(?i)getrf|potrf|geqrf|syev|gesvd|heev|hybrid_eig|lapack_.geev")
_SAME = ("bitcast", "reshape", "transpose", "copy", "convert")


def unchanged_decompositions(
    modules: Sequence[Module], copied: Collection[int]
) -> set[tuple[str, str | None]]:
    """Op and shapes of the operands of each decomposition of such a matrix; `copied` are the bytes of copies to the device."""
    returned = {shape for one in modules for shape in _returned(one)}
    found = set()
    for module in modules:
        body = {one.id: one for one in module.instructions(module.entry)}
        for one in body.values():
            source = _source(body, one) if _decomposes(one) else None
            if source is None or source.shape in returned or shape_bytes(source.shape) in copied:
                continue
            work = Worker(module).work(one, body)
            found.add((work.op, work.shapes))
    return found


def _decomposes(one: Instruction) -> bool:
    return one.opcode == "cholesky" or (one.opcode == "custom-call" and bool(_DECOMPOSES.search(one.target)))


def _returned(module: Module) -> list[Shape]:
    """The arrays that the program returns."""
    root = root_of(module.instructions(module.entry))
    return list(root.shape.arrays()) if root is not None else []


def _source(body: dict[int, Instruction], one: Instruction) -> Instruction | None:
    """The parameter that the decomposed matrix is, in another order at most; None where it is computed, or one of many."""
    for _ in body:
        first = body.get(one.operands[0]) if one.operands else None
        if first is None:
            return None
        if first.opcode == "parameter":
            return first if len(first.shape.sizes) == 2 else None
        alone = first.opcode in _SAME or (first.opcode == "fusion" and len(first.operands) == 1)
        if not alone or first.shape.elements != body.get(first.operands[0], first).shape.elements:
            return None
        one = first
    return None
