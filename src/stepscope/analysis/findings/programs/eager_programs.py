"""What one compiled program would leave of a step of JAX that runs op by op on a CPU.

Compiled functions between the single ops stay as they are, with the time of their calls; ops are fused, and not called one by one.
A single op takes longer than its arrays do: the rest is spent on starting it, and goes as well. One that updates an array makes
a copy of all of it first, unless it is inside of a program to which the array is donated.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Interval
from stepscope.analysis.findings.programs.host_programs import program_of, runs_on_host, work_of_programs
from stepscope.analysis.host.program_calls import PROGRAM_CALLS, called_function
from stepscope.analysis.xla.hlo_module import Module, read_module
from stepscope.analysis.xla.instruction_cost import ELEMENTWISE, SILENT
from stepscope.analysis.xla.ops import programs_that_ran
from stepscope.analysis.xla.sizes.touched_bytes import touched_bytes
from stepscope.registers.calibration.host_ops import FUSED_HOST_OP_NS, HOST_BYTES_PER_NS
from stepscope.registers.calibration.kernels import FUSED_ELEMENTWISE_LEAST, FUSED_ELEMENTWISE_MOST
from stepscope.registers.policy.findings import ACCOUNT_SAVES, KERNELS_OF_EAGER_CALL
from stepscope.trace.frames import take_largest, take_smallest
from stepscope.trace.lookup import is_named
from stepscope.trace.scopes import at_or_inside

# What takes as long as its arrays do.
_BY_BYTES = ELEMENTWISE | SILENT | frozenset(
    (
        "broadcast", "concatenate", "copy", "dynamic-slice", "dynamic-update-slice", "fusion", "gather", "iota", "pad", "reduce",
        "reshape", "reverse", "scatter", "slice", "transpose",
    )
)  # fmt: skip
_OP = re.compile(r"jit\((\w+)\)/\1")


def left_of_programs(case: Case, owned: pl.DataFrame, looped: Collection[str]) -> Interval | None:
    """Of the step, if `owned` is the dispatch of its ops; programs that a loop calls are `looped`: compiled with it, they are not called any more.

    None where the code is not known.
    """
    compiled = _compiled(case)
    if compiled is None:
        return None
    work = work_of_programs(case)
    kept = work.filter(pl.col("program").is_in(list(compiled)))["slice"]
    simple = work.filter(~pl.col("program").is_in(list(compiled)))
    going = owned.filter(
        ~pl.col("slice").is_in(kept.implode()), ~pl.col("slice").is_in(simple["slice"].implode())
    )
    calls = _is_in_calls(case, compiled.difference(looped))
    going = going.filter(~calls.gather(going["named_by"]).fill_null(False))
    gone, alone = case.per_step(going) / case.step_ns, case.per_step(simple) / case.step_ns
    fused = _of_arrays(case, simple) / case.step_ns
    return Interval(
        1 - gone - alone + FUSED_ELEMENTWISE_LEAST * fused,
        1 - gone - alone + FUSED_ELEMENTWISE_MOST * fused,
        1 - ACCOUNT_SAVES * gone,
    )


def _of_arrays(case: Case, simple: pl.DataFrame) -> float:
    """How much of these slices of single ops, in nanoseconds a step, their arrays take at most; the rest starts the ops."""
    if simple.is_empty():
        return 0.0
    first, last = take_smallest(simple["start_ns"]), take_largest(simple["end_ns"])
    runs = runs_on_host(case).filter(pl.col("run_start").is_between(first, last)).drop_nulls("ran")
    moved = runs["ran"].replace_strict(_bytes_of_ops(case), default=None, return_dtype=pl.Float64)
    needed = runs.with_columns(needed=moved / HOST_BYTES_PER_NS + FUSED_HOST_OP_NS).drop_nulls("needed")
    summed = needed.group_by(program="ran").agg(pl.col("needed").sum())
    taken = simple.group_by("program").agg(pl.col("ns").sum())
    known = taken.join(summed, on="program", how="left")  # of what is not known, all
    return case.per_step(known.select(ns=pl.min_horizontal("ns", pl.col("needed").cast(pl.Int64))))


def _bytes_of_ops(case: Case) -> dict[str, int]:
    """What each program reads and writes, if it does little else; most, of several with one name."""
    found: dict[str, list[int | None]] = {}
    for name, _, hlo in programs_that_ran(case.trace):
        found.setdefault(name.rstrip("_"), []).append(_count_bytes(read_module(hlo)))
    counted = {name: [each for each in counts if each is not None] for name, counts in found.items()}
    return {name: max(known) for name, known in counted.items() if len(known) == len(found[name])}


def _count_bytes(module: Module) -> int | None:
    """Without the copy of an argument that the program updates: of a donated argument none is made. None of products, sorts and loops."""
    inside = (one for number in module.bodies for one in module.instructions(number))
    if not all(one.opcode in _BY_BYTES for one in inside):
        return None
    known = {one.id: one for one in module.instructions(module.entry)}
    given = {number for number, one in known.items() if one.opcode == "parameter"}
    working = [one for one in known.values() if one.opcode not in SILENT]
    others = [one for one in working if one.opcode != "copy" or not given.issuperset(one.operands)]
    counted = [touched_bytes(module, one, known) for one in others or working]
    return None if None in counted else sum(each or 0 for each in counted)


def _compiled(case: Case) -> frozenset[str] | None:
    """The programs that are more than single ops."""
    programs = programs_that_ran(case.trace)
    if not programs:
        return None
    return frozenset(name.rstrip("_") for name, _, hlo in programs if not is_single_op(read_module(hlo)))


def is_single_op(module: Module) -> bool:
    """Whether a program is one op of JAX that was called by itself, however many kernels that takes."""
    working = [one for one in module.instructions(module.entry) if one.opcode not in SILENT]
    names = {one.op_name for one in working if one.op_name}
    is_one = len(names) == 1 and all(_OP.fullmatch(name) for name in names)
    return is_one or len(working) <= KERNELS_OF_EAGER_CALL


def _is_in_calls(case: Case, programs: frozenset[str]) -> pl.Series:
    """Whether each event is a call of one of the programs, or inside of one."""
    events = case.trace.events
    names = events["name"].filter(is_named(events, PROGRAM_CALLS)).cast(pl.String).unique()
    mine = [name for name in names if program_of(called_function(name)) in programs]
    return at_or_inside(events, events["name"].cast(pl.String).is_in(mine))
