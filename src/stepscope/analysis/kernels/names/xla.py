"""What XLA's compiled modules say of the kernels named after their instructions: which formats they compute in.

A kernel is named after its instruction, with `_` for `.` and `-`. A matrix product has the format of what its `dot`
or `convolution` reads, or what its precision setting rounds that to; other fusions have the widest floating format
among their arrays, since arithmetic on mixed formats is done in the wider one.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.analysis.kernels.names.label import Compiled
from stepscope.analysis.xla import hlo_module
from stepscope.analysis.xla.hlo_module import Instruction, as_kernel, name_of, read_instruction
from stepscope.analysis.xla.instruction_cost import FORMATS
from stepscope.registers.policy.tables import XLA_FUSION_DEPTH
from stepscope.trace.trace import Trace

_WIDTHS = {"fp64": 5, "fp32": 4, "bf16": 3, "fp16": 3, "fp8": 2, "fp4": 1}
_PRODUCTS = ("dot", "convolution", "scaled-dot")
# Instructions that only make, move or retype data.
_MOVES = frozenset(
    (
        "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "broadcast", "copy", "reshape", "transpose",
        "slice", "dynamic-slice", "concatenate", "dynamic-update-slice", "pad", "gather", "iota", "reverse", "convert",
        "bitcast-convert", "fusion",
    )
)  # fmt: skip
_ALGORITHMS = {3: "fp16", 4: "fp16", 5: "bf16", 6: "bf16", 7: "bf16", 8: "bf16", 13: "bf16", 9: "tf32", 10: "tf32", 11: "fp32", 12: "fp64", 1: "fp8", 2: "fp8"}  # fmt: skip


def plain_name(name: str) -> str:
    """A kernel's or an instruction's name as both have it: GPUs write `_` for `.` and `-`, ROCm adds `.kd`."""
    return as_kernel(name.removesuffix(".kd"))


class Module(hlo_module.Module):
    """A program, asked for the kernels that are named after its instructions."""

    def kernels(self, wanted: set[str]) -> dict[str, Compiled]:
        """Those of the wanted kernels that are named after an instruction of this module."""
        found = self._library_attention(wanted)
        for body in self.bodies.values():
            for message in body:
                name = plain_name(name_of(message))
                if name in wanted:
                    compiled = self._compiled(read_instruction(message), body)
                    if compiled is not None:
                        found[name] = compiled
        return found

    def _library_attention(self, wanted: set[str]) -> dict[str, Compiled]:
        """cuDNN's attention is named by cuDNN; its format is known where all calls in the module share one."""
        names = [name for name in wanted if name.startswith("cudnn_generated") and "sdpa" in name]
        if not names:
            return {}
        formats = set()
        for body in self.bodies.values():
            if any(b"fmha" in message.tobytes() for message in body):
                beside = {i.id: i for i in map(read_instruction, body)}
                calls = [i for i in beside.values() if "fmha" in i.target]
                formats |= {FORMATS.get(i.element) for call in calls for i in _read(call, beside)[:1]}
        only = formats.pop() if len(formats) == 1 else None
        return {name: Compiled(only, True) for name in names} if only else {}

    def _compiled(self, instruction: Instruction, beside: list[memoryview]) -> Compiled | None:
        if instruction.opcode in _PRODUCTS:
            return _product(instruction, {i.id: i for i in map(read_instruction, beside)})
        if instruction.opcode != "fusion":
            return None
        bodies = [body for called in instruction.called for body in self._nested(called, 0)]
        products = {_product(i, body) for body in bodies for i in body.values() if i.opcode in _PRODUCTS}
        if products:
            return products.pop() if len(products) == 1 else Compiled(None, True)
        if all(i.opcode in _MOVES for body in bodies for i in body.values()):
            return Compiled("none", False)
        read = [i for i in bodies[0].values() if i.opcode == "parameter"] if bodies else []
        return Compiled(_widest(read) or "none", False)

    def _nested(self, called: int, depth: int) -> Iterator[dict[int, Instruction]]:
        """A computation and those it calls; calls cannot nest for ever in a file that lies."""
        body = {i.id: i for i in self.instructions(called)}
        yield body
        for instruction in body.values():
            if instruction.called and depth < XLA_FUSION_DEPTH:
                for inner in instruction.called:
                    yield from self._nested(inner, depth + 1)


def compiled_kernels(trace: Trace, wanted: set[str]) -> dict[str, Compiled]:
    """By kernel name, for all names on which the modules that ran agree."""
    found: dict[str, Compiled] = {}
    clashes: set[str] = set()
    plain = {name: plain_name(name) for name in wanted}
    for hlo in _modules_that_ran(trace):
        for name, compiled in Module(hlo).kernels(set(plain.values())).items():
            if found.setdefault(name, compiled) != compiled:
                clashes.add(name)
    return {name: found[key] for name, key in plain.items() if key in found and key not in clashes}


def _modules_that_ran(trace: Trace) -> list[bytes]:
    """Those that device work names as its own; all where none is named."""
    modules = trace.modules.drop_nulls("hlo")
    scopes = trace.ops["scope"].unique().drop_nulls().cast(pl.String)
    named = modules.filter(pl.col("name").is_in(scopes.str.split("/").list.first().implode()))
    return (named if len(named) else modules)["hlo"].to_list()


def _product(dot: Instruction, everything: dict[int, Instruction]) -> Compiled:
    """fp32 data without a setting may be rounded to tf32 or not: XLA decides that elsewhere."""
    if dot.algorithm in _ALGORITHMS:
        return Compiled(_ALGORITHMS[dot.algorithm], True)
    read = [FORMATS.get(i.element) for i in _read(dot, everything)[:2]]
    if "fp32" in read:
        return Compiled("fp32", True, exact=dot.highest)
    known = [f for f in read if f]
    return Compiled(max(known, key=lambda f: _WIDTHS.get(f, 0)) if known else None, True)


def _read(instruction: Instruction, everything: dict[int, Instruction]) -> list[Instruction]:
    return [everything[i] for i in instruction.operands if i in everything]


def _widest(arrays: list[Instruction]) -> str | None:
    """Numbers without dimensions are settings, not data, where there is data."""
    data = [i for i in arrays if i.rank] or arrays
    formats = [FORMATS[i.element] for i in data if FORMATS.get(i.element) in _WIDTHS]
    return max(formats, key=lambda f: _WIDTHS[f], default=None)
