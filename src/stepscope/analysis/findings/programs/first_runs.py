"""What a cached program would leave of steps of JAX in which the host itself runs programs that it has just compiled.

The call that compiles goes through Python to find the program, and its first run meets cold caches and memory that was never touched.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Interval
from stepscope.analysis.findings.programs.host_programs import program_of, work_of_programs
from stepscope.analysis.host.causes import host_codes
from stepscope.analysis.host.program_calls import PROGRAM_CALLS, called_function
from stepscope.analysis.xla.hlo_module import read_module
from stepscope.analysis.xla.ops import programs_that_ran
from stepscope.lazy import dataclass
from stepscope.native.host.lineage import COMPILE
from stepscope.registers.calibration.launches import LATER_RUN_LEAST, LATER_RUN_MOST
from stepscope.registers.policy.findings import MAJORITY
from stepscope.trace.lookup import is_named
from stepscope.trace.scopes import ancestors, at_or_inside, sums_below

_FORGETS = r"^\$weakref\.py:\d+ remove$"


@dataclass(frozen=True)
class FirstRuns:
    """`around`: free slices of the calls that compile, beside the compiler; `computed_ns`: of the first runs, in a step.

    `released_ns`: what Python takes in a step to let go of programs. `growth`: how many times as large arguments
    are where all are padded to one size: the largest recorded, and one as far beyond that as those differ.
    """

    around: pl.DataFrame
    computed_ns: int
    released_ns: int
    growth: tuple[float, float]

    def left(self, case: Case, owned_ns: float) -> Interval:
        """What is left of a step without the compiler and these calls (`owned_ns`), when the programs have run before."""
        rest = 1 - (owned_ns + self.computed_ns) / case.step_ns
        first, released = self.computed_ns / case.step_ns, self.released_ns / case.step_ns
        recorded, beyond = self.growth
        typical = (LATER_RUN_LEAST * LATER_RUN_MOST) ** 0.5
        return Interval(
            rest - released + LATER_RUN_LEAST * first,
            min(1.0, rest - released + typical * recorded * first),
            min(1.0, rest + LATER_RUN_MOST * beyond * first),
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
    inside = events["id"].filter(at_or_inside(events, compiling))
    around = case.free(
        pl.col("part").is_in(["dispatch", "python"]),
        pl.col("named_by").is_in(inside.implode()),
        ~pl.col("slice").is_in(work["slice"].implode()),
    )
    programs = {program_of(called_function(name)) for name in functions}
    mine = work.filter(pl.col("program").is_in(list(programs)))
    return FirstRuns(around, case.per_step(mine), _released_ns(case), _growth(case, programs))


def _released_ns(case: Case) -> int:
    """Python right after a weak reference has died, which JAX keeps of each function: its program is taken apart there."""
    events = case.trace.events
    died = events.filter(is_named(events, _FORGETS))
    ends = died.select(caller="parent", start_ns=pl.col("start_ns") + pl.col("dur_ns"))
    python = case.free(pl.col("part") == "python")
    after = python.join(ends, left_on=["named_by", "start_ns"], right_on=["caller", "start_ns"], how="semi")
    return case.per_step(after)


def _growth(case: Case, programs: Collection[str]) -> tuple[float, float]:
    codes: dict[str, list[bytes]] = {}
    for name, _, hlo in programs_that_ran(case.trace):
        if name.rstrip("_") in programs:
            codes.setdefault(name.rstrip("_"), []).append(hlo)
    return max(map(growth_of_arguments, codes.values()), default=(1.0, 1.0))


def growth_of_arguments(codes: Sequence[bytes]) -> tuple[float, float]:
    """Of one function's programs: the largest of the argument that differs most, over its mean, and the same of one that is larger yet."""
    sizes = [_argument_sizes(code) for code in codes]
    found = [(1.0, 1.0)]
    for number in sizes[0]:
        each = [of.get(number, 0) for of in sizes]
        mean, largest = sum(each) / len(each), max(each)
        if mean:
            found.append((largest / mean, (2 * largest - min(each)) / mean))
    return max(found)


def _argument_sizes(code: bytes) -> dict[int, int]:
    """The elements of each argument, by its number."""
    module = read_module(code)
    arguments = [one for one in module.instructions(module.entry) if one.opcode == "parameter"]
    return {one.parameter: one.shape.elements for one in arguments}
