"""What XLA's compiled modules say of the kernels named after their instructions: which formats they compute in.

A kernel is named after its instruction, with `_` for `.` and `-`. A matrix product has the format of what its `dot`
or `convolution` reads, or what its precision setting rounds that to; other fusions have the widest floating format
among their arrays, since arithmetic on mixed formats is done in the wider one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl

from stepscope.analysis.kernel_names_label import Compiled
from stepscope.formats.protobuf import Value, fields, text
from stepscope.trace.problems import Problems
from stepscope.trace.trace import Trace

_FORMATS = {
    10: "fp16",
    11: "fp32",
    12: "fp64",
    15: "fp32",
    18: "fp64",
    16: "bf16",
    2: "int8",
    6: "int8",
    21: "int4",
    22: "int4",
    32: "fp4",
}
_FORMATS.update(dict.fromkeys((19, 20, 23, 24, 25, 28, 29), "fp8"))
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
_HIGHEST = 2
_DEEPEST = 4


@dataclass
class Instruction:
    """The fields of an HLO instruction that matter here."""

    id: int = 0
    name: str = ""
    opcode: str = ""
    element: int = 0
    rank: int = 0
    target: str = ""
    operands: list[int] = field(default_factory=list)
    called: list[int] = field(default_factory=list)
    algorithm: int = 0
    highest: bool = False


class Module:
    """A module read as far as it is asked for: large ones have a hundred thousand instructions."""

    def __init__(self, hlo: bytes) -> None:
        self.bodies: dict[int, list[memoryview]] = {}
        for module in _messages(memoryview(hlo), 1):
            for computation in _messages(module, 3):
                number, body = _computation(computation)
                self.bodies[number] = body

    def instructions(self, computation: int) -> list[Instruction]:
        """The decoded instructions of one computation."""
        return [_instruction(message) for message in self.bodies.get(computation, ())]

    def kernels(self, wanted: set[str]) -> dict[str, Compiled]:
        """Those of the wanted kernels that are named after an instruction of this module."""
        found = self._library_attention(wanted)
        for body in self.bodies.values():
            for message in body:
                name = _kernel_name(message)
                if name in wanted:
                    compiled = self._compiled(_instruction(message), body)
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
                beside = {i.id: i for i in map(_instruction, body)}
                calls = [i for i in beside.values() if "fmha" in i.target]
                formats |= {_FORMATS.get(i.element) for call in calls for i in _read(call, beside)[:1]}
        only = formats.pop() if len(formats) == 1 else None
        return {name: Compiled(only, True) for name in names} if only else {}

    def _compiled(self, instruction: Instruction, beside: list[memoryview]) -> Compiled | None:
        if instruction.opcode in _PRODUCTS:
            return _product(instruction, {i.id: i for i in map(_instruction, beside)})
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
            if instruction.called and depth < _DEEPEST:
                for inner in instruction.called:
                    yield from self._nested(inner, depth + 1)


def compiled_kernels(trace: Trace, wanted: set[str]) -> dict[str, Compiled]:
    """By kernel name, for all names on which the modules that ran agree."""
    found: dict[str, Compiled] = {}
    clashes: set[str] = set()
    for hlo in _modules_that_ran(trace):
        for name, compiled in Module(hlo).kernels(wanted).items():
            if found.setdefault(name, compiled) != compiled:
                clashes.add(name)
    return {name: compiled for name, compiled in found.items() if name not in clashes}


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
    read = [_FORMATS.get(i.element) for i in _read(dot, everything)[:2]]
    if "fp32" in read:
        return Compiled("fp32", True, exact=dot.highest)
    known = [f for f in read if f]
    return Compiled(max(known, key=lambda f: _WIDTHS.get(f, 0)) if known else None, True)


def _read(instruction: Instruction, everything: dict[int, Instruction]) -> list[Instruction]:
    return [everything[i] for i in instruction.operands if i in everything]


def _widest(arrays: list[Instruction]) -> str | None:
    """Numbers without dimensions are settings, not data, where there is data."""
    data = [i for i in arrays if i.rank] or arrays
    formats = [_FORMATS[i.element] for i in data if _FORMATS.get(i.element) in _WIDTHS]
    return max(formats, key=lambda f: _WIDTHS[f], default=None)


def _computation(message: memoryview) -> tuple[int, list[memoryview]]:
    number, body = 0, []
    for key, value in fields(message, Problems()):
        if key == 2 and not isinstance(value, int):
            body.append(value)
        elif key == 5 and isinstance(value, int):
            number = value
    return number, body


def _kernel_name(message: memoryview) -> str:
    """The instruction's name as a kernel carries it; the name is the first field."""
    for key, value in fields(message, Problems()):
        return text(value).replace(".", "_").replace("-", "_") if key == 1 else ""
    return ""


def _messages(message: memoryview, number: int) -> Iterator[memoryview]:
    for key, value in fields(message, Problems()):
        if key == number and not isinstance(value, int):
            yield value


def _instruction(message: memoryview) -> Instruction:
    made = Instruction()
    for key, value in fields(message, Problems()):
        if key == 1:
            made.name = text(value)
        elif key == 2:
            made.opcode = text(value)
        elif key == 28:
            made.target = text(value)
        elif key == 3 and not isinstance(value, int):
            _shape(value, made)
        elif key == 51 and not isinstance(value, int):
            _precision(value, made)
        elif key == 35 and isinstance(value, int):
            made.id = value
        elif key == 36:
            made.operands += _numbers(value)
        elif key == 38:
            made.called += _numbers(value)
    return made


def _shape(message: memoryview, made: Instruction) -> None:
    for key, value in fields(message, Problems()):
        if key == 2 and isinstance(value, int):
            made.element = value
        elif key == 3:
            made.rank += len(_numbers(value))


def _precision(message: memoryview, made: Instruction) -> None:
    for key, value in fields(message, Problems()):
        if key == 1:
            made.highest = _HIGHEST in _numbers(value) or made.highest
        elif key == 2 and isinstance(value, int):
            made.algorithm = value


def _numbers(value: Value) -> list[int]:
    """A repeated number, packed or alone."""
    if isinstance(value, int):
        return [value]
    found, current, shift = [], 0, 0
    for byte in value:
        current |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            found.append(current)
            current, shift = 0, 0
    return found
