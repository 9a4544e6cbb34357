"""What one compiled program would leave of a step of JAX that runs op by op on a CPU.

Compiled functions between the single ops stay as they are, with the time of their calls; ops are fused, and not called one by one.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Interval
from stepscope.analysis.findings.programs.host_programs import program_of, work_of_programs
from stepscope.analysis.host.program_calls import PROGRAM_CALLS, called_function
from stepscope.analysis.xla.hlo_module import read_module
from stepscope.analysis.xla.instruction_cost import SILENT
from stepscope.analysis.xla.ops import programs_that_ran
from stepscope.registers.calibration.kernels import FUSED_ELEMENTWISE_LEAST, FUSED_ELEMENTWISE_MOST
from stepscope.registers.policy.findings import ACCOUNT_SAVES, KERNELS_OF_EAGER_CALL
from stepscope.trace.lookup import is_named
from stepscope.trace.scopes import at_or_inside


def left_of_programs(case: Case, owned: pl.DataFrame, *, is_loop: bool) -> Interval | None:
    """Of the step, if `owned` is the dispatch of its ops; a loop over one program calls that only once. None where the code is not known."""
    compiled = _compiled(case)
    if compiled is None:
        return None
    work = work_of_programs(case)
    kept = work.filter(pl.col("program").is_in(list(compiled)))["slice"]
    simple = work.filter(~pl.col("program").is_in(list(compiled)))
    going = owned.filter(
        ~pl.col("slice").is_in(kept.implode()), ~pl.col("slice").is_in(simple["slice"].implode())
    )
    if not is_loop:
        going = going.filter(~_is_in_calls(case, compiled).gather(going["named_by"]).fill_null(False))
    gone, fused = case.per_step(going) / case.step_ns, case.per_step(simple) / case.step_ns
    return Interval(
        1 - gone - (1 - FUSED_ELEMENTWISE_LEAST) * fused,
        1 - gone - (1 - FUSED_ELEMENTWISE_MOST) * fused,
        1 - ACCOUNT_SAVES * gone,
    )


def _compiled(case: Case) -> frozenset[str] | None:
    """The programs that are more than single ops."""
    programs = programs_that_ran(case.trace)
    if not programs:
        return None
    return frozenset(
        name.rstrip("_") for name, _, hlo in programs if _count_kernels(hlo) > KERNELS_OF_EAGER_CALL
    )


def _count_kernels(hlo: bytes) -> int:
    module = read_module(hlo)
    return sum(one.opcode not in SILENT for one in module.instructions(module.entry))


def _is_in_calls(case: Case, programs: frozenset[str]) -> pl.Series:
    """Whether each event is a call of one of the programs, or inside of one."""
    events = case.trace.events
    names = events["name"].filter(is_named(events, PROGRAM_CALLS)).cast(pl.String).unique()
    mine = [name for name in names if program_of(called_function(name)) in programs]
    return at_or_inside(events, events["name"].cast(pl.String).is_in(mine))
