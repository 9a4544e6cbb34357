"""Matrices that a compiled program decomposes again in every run, although nothing changes them.

The program is given the matrix as a parameter, no program that ran returns an array of its type and shape, and none of its size is
copied to the device: it was there before the first step.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from stepscope.analysis.xla.hlo_module import Instruction, Module, Shape
from stepscope.analysis.xla.instruction_cost import Worker, shape_bytes
from stepscope.analysis.xla.loops import root_of
from stepscope.analysis.xla.same_work import same_work

_DECOMPOSES = re.compile(r"(?i)getrf|potrf|geqrf|syev|gesvd|heev|hybrid_eig|lapack_.geev")
_SAME = ("bitcast", "reshape", "transpose", "copy", "convert")


def unchanged_decompositions(
    modules: Sequence[Module], copied: Collection[int]
) -> set[tuple[str, str | None]]:
    """Op and shapes of the operands of each decomposition of such a matrix; `copied` are the bytes of copies to the device."""
    found = set()
    for module, decomposed in _unchanged(modules, copied):
        body = {one.id: one for one in module.instructions(module.entry)}
        works = (Worker(module).work(one, body) for one, _ in decomposed)
        found |= {(work.op, work.shapes) for work in works}
    return found


def work_on_unchanged(modules: Sequence[Module], copied: Collection[int]) -> set[tuple[str, str | None]]:
    """The same of all that needs nothing but such matrices: what their factors are turned, selected and permuted by."""
    found = set()
    for module, decomposed in _unchanged(modules, copied):
        body = {one.id: one for one in module.instructions(module.entry)}
        matrices = {source.parameter for _, source in decomposed}
        others = {one.parameter for one in body.values() if one.opcode == "parameter"} - matrices
        names = same_work(module, others, matrices).names
        works = (Worker(module).work(one, body) for one in body.values() if one.name in names)
        found |= {(work.op, work.shapes) for work in works}
    return found


def _unchanged(
    modules: Sequence[Module], copied: Collection[int]
) -> Iterator[tuple[Module, list[tuple[Instruction, Instruction]]]]:
    """Each program with its decompositions of such matrices, and the parameters that these are."""
    returned = {shape for one in modules for shape in _returned(one)}
    for module in modules:
        body = {one.id: one for one in module.instructions(module.entry)}
        sources = ((one, _source(body, one)) for one in body.values() if _decomposes(one))
        found = [
            (one, source)
            for one, source in sources
            if source is not None and source.shape not in returned and shape_bytes(source.shape) not in copied
        ]
        if found:
            yield module, found


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
