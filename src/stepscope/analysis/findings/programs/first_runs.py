"""What a cached program would leave of steps of JAX in which the host itself runs programs that it has just compiled.

The call that compiles goes through Python to find the program, and its first run meets cold caches and memory that was never touched.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Interval
from stepscope.analysis.findings.programs.host_programs import program_of, work_of_programs
from stepscope.analysis.host.causes import host_codes
from stepscope.analysis.host.program_calls import PROGRAM_CALLS, called_function
from stepscope.lazy import dataclass
from stepscope.native.host.lineage import COMPILE
from stepscope.registers.calibration.launches import LATER_RUN_LEAST, LATER_RUN_MOST
from stepscope.registers.policy.findings import MAJORITY
from stepscope.trace.lookup import is_named
from stepscope.trace.scopes import ancestors, at_or_inside, sums_below


@dataclass(frozen=True)
class FirstRuns:
    """`around`: free slices of the calls that compile, beside the compiler; `computed_ns`: of the first runs, in a step."""

    around: pl.DataFrame
    computed_ns: int

    def left(self, case: Case, owned_ns: float) -> Interval:
        """What is left of a step without the compiler and these calls (`owned_ns`), when the programs have run before."""
        gone, first = owned_ns / case.step_ns, self.computed_ns / case.step_ns
        typical = (LATER_RUN_LEAST * LATER_RUN_MOST) ** 0.5
        return Interval(
            1 - gone - (1 - LATER_RUN_LEAST) * first,
            1 - gone - (1 - typical) * first,
            1 - gone,
        )


def first_runs(case: Case) -> FirstRuns | None:
    """Those of the steps; None where a device runs the programs, or where most calls find them compiled."""
    if case.trace.info.framework != "jax" or case.device is not None:
        return None
    events = case.trace.events
    calls = is_named(events, PROGRAM_CALLS) & events["step"].is_not_null()
    calls &= ancestors(events, calls).is_null()
    compiling = calls & (sums_below(events, host_codes(case.trace) == COMPILE) > 0)
    functions = events["name"].filter(compiling).cast(pl.String).unique()
    same = calls & events["name"].cast(pl.String).is_in(functions.implode())
    if int(compiling.sum()) <= MAJORITY * int(same.sum()):
        return None
    work = work_of_programs(case)
    mine = work.filter(pl.col("program").is_in([program_of(called_function(name)) for name in functions]))
    inside = events["id"].filter(at_or_inside(events, compiling))
    around = case.free(
        pl.col("part").is_in(["dispatch", "python"]),
        pl.col("named_by").is_in(inside.implode()),
        ~pl.col("slice").is_in(work["slice"].implode()),
    )
    return FirstRuns(around, case.per_step(mine))
