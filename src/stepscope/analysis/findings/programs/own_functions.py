"""Which programs of JAX are functions of the job that are compiled as a whole, however few kernels they have: their code says so."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from stepscope.analysis.xla.hlo_module import Module, read_module
from stepscope.analysis.xla.instruction_cost import SILENT
from stepscope.registers.policy.findings import EAGER_DISTINCT_CALLS, INSTRUCTIONS_OF_OP
from stepscope.trace.trace import Trace

_PRIVATE, _LAMBDA = "jit__", "jit__lambda"
# What moves, chooses or converts values, and what is around others: single ops have many of these for their indices.
_AROUND = frozenset(
    (
        "broadcast", "call", "compare", "concatenate", "conditional", "convert", "copy", "copy-done", "copy-start",
        "custom-call", "dynamic-slice", "dynamic-update-slice", "fusion", "gather", "iota", "pad", "reshape", "reverse",
        "scatter", "select", "slice", "transpose", "while",
    )
)  # fmt: skip


def is_private(program: str) -> bool:
    """Whether a function has the name of one of JAX itself, such as `_threefry_split`: those make random numbers, in many instructions."""
    return program.startswith(_PRIVATE) and not program.startswith(_LAMBDA)


def own_functions(trace: Trace, programs: Collection[str]) -> frozenset[str]:
    """Those of some programs that compute more than nearly any op of JAX does by itself."""
    mine = [name for name in programs if not is_private(name)]
    return frozenset(name for name, often in computing(trace, mine).items() if often > INSTRUCTIONS_OF_OP)


def computing(trace: Trace, programs: Collection[str]) -> dict[str, int]:
    """How many instructions of some programs compute something, as far as that is more than ops of JAX have; how names end does not count."""
    mine = {name.rstrip("_"): name for name in programs}
    codes = trace.modules.drop_nulls("hlo").select(pl.col("name").str.strip_chars_end("_"), "hlo")
    rows = codes.filter(pl.col("name").is_in(list(mine))).iter_rows()
    return {mine[name]: _count_computing(read_module(hlo)) for name, hlo in rows}


def has_few_between(runs: float, of_functions: float) -> bool:
    """Whether a step runs few single ops for each call of a function that it calls again and again: these cut inputs, split keys and count."""
    return runs - of_functions < (EAGER_DISTINCT_CALLS - 1) * of_functions


def _count_computing(module: Module) -> int:
    found = 0
    for number in module.bodies:
        opcodes = (one.opcode for one in module.instructions(number))
        found += sum(each not in SILENT and each not in _AROUND for each in opcodes)
        if found > INSTRUCTIONS_OF_OP:  # a program may have a hundred thousand
            break
    return found
