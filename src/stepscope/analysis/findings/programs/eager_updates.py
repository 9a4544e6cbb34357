"""Arrays of JAX that single ops update outside of a compiled function: each op copies all of its array first, whose caller may still need it.

Inside a function that is given the array as its own (donated), the same op writes some rows, and ops around it are called no more.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.programs.eager_programs import is_single_op
from stepscope.analysis.findings.programs.parts import part_of_program
from stepscope.analysis.findings.programs.program_runs import are_calls, program_runs
from stepscope.analysis.host.causes import host_codes
from stepscope.analysis.host.program_calls import PROGRAM_CALLS
from stepscope.analysis.xla.hlo_module import read_module
from stepscope.analysis.xla.ops import programs_that_ran
from stepscope.analysis.xla.undonated import undonated_copies
from stepscope.lazy import dataclass
from stepscope.native.host.lineage import FRAMEWORK
from stepscope.registers.policy.device_findings import COPIES_ON_DEVICE_LEAST
from stepscope.registers.policy.findings import MAJORITY
from stepscope.trace.frames import take
from stepscope.trace.lookup import is_named
from stepscope.trace.scopes import ancestors, at_or_inside, sums_below


@dataclass(frozen=True)
class EagerUpdates:
    """`copies`: the work of the device that copies whole arrays. `ops`, `functions`: for each event of the host whether it goes with them.

    Ops are the calls that update an array, with the framework's own code around them; functions, with all code of the job that does
    little else. `calls`: how many programs a step calls there.
    """

    copies: pl.Series
    ops: pl.Series
    functions: pl.Series
    calls: float

    def change(self, case: Case, without: Change) -> Change:
        """One call is left of many, on top of what goes on the device."""
        smallest = without.smallest.with_host(_is_in(case, self.ops), 1 / max(1.0, self.calls))
        return Change(smallest, without.largest.with_host(_is_in(case, self.functions)))

    def slices(self, case: Case) -> pl.DataFrame:
        """The free time of the host that goes."""
        host = case.free(pl.col("part").is_in(["dispatch", "python"]))
        return host.filter(_are_in(case, host, host["part"], self.functions))

    def decide(self, case: Case) -> bool:
        """Whether the copies, and not the calls, are most of what would be saved."""
        mine = pl.col("event").is_in(self.copies.implode())
        copied = int(case.plan.items.filter(mine)["device_ns"].sum())
        without = case.plan.with_device(mine).with_host(_is_in(case, self.functions))
        return copied > MAJORITY * (case.played_ns - without.step_ns()) * max(1, len(case.lengths))


def eager_updates(case: Case) -> EagerUpdates | None:
    """The copies that single ops make of arrays which they update, if they are what a step is to be changed for."""
    if case.trace.info.framework != "jax" or case.device is None:
        return None
    found, names = [], set()
    for name, device, hlo in programs_that_ran(case.trace):
        if device != case.device or (b"scatter" not in hlo and b"dynamic-update-slice" not in hlo):
            continue
        module = read_module(hlo)
        undonated = undonated_copies(module) if is_single_op(module) else None
        if undonated is not None:
            names.add(name)
            found.append(part_of_program(case, name, hlo, undonated.names)["event"])
    copies = pl.concat(found).unique() if found else pl.Series(dtype=pl.UInt32)
    if copies.is_empty():
        return None
    owned = case.free(pl.col("part").is_in(["compute", "copy"]), pl.col("named_by").is_in(copies.implode()))
    if case.per_step(owned) < COPIES_ON_DEVICE_LEAST * case.step_ns:
        return None
    updates = _with_host(case, copies, names)
    return updates if updates.decide(case) else None


def _with_host(case: Case, copies: pl.Series, programs: set[str]) -> EagerUpdates:
    events = case.trace.events
    updating = are_calls(events, programs)
    writes, codes = sums_below(events, updating) > 0, host_codes(case.trace)
    around = writes & (events["kind"] == "python") & ~_calls_functions(case)
    ops, functions = updating | (around & (codes == FRAMEWORK)), updating | around
    calls = is_named(events, PROGRAM_CALLS) & events["step"].is_not_null()
    outer = calls & ancestors(events, calls).is_null() & at_or_inside(events, functions)
    return EagerUpdates(
        copies,
        at_or_inside(events, ops),
        at_or_inside(events, functions),
        int(outer.sum()) / max(1, len(case.lengths)),
    )


def _calls_functions(case: Case) -> pl.Series:
    """Whether each event calls a compiled function somewhere inside: the step itself does, if any code of the job."""
    events, runs = case.trace.events, program_runs(case)
    compiled = [] if runs is None else runs.starts.filter("is_compiled")["program"].unique().to_list()
    calls = are_calls(events, compiled)
    if not calls.any():
        return pl.repeat(True, len(events), dtype=pl.Boolean, eager=True)
    return sums_below(events, calls) > 0


def _is_in(case: Case, events: pl.Series) -> pl.Expr:
    """Host work of the plan that belongs to some events."""
    return pl.lit(_are_in(case, case.plan.host, case.plan.host["cause"], events))


def _are_in(case: Case, rows: pl.DataFrame, parts: pl.Series, events: pl.Series) -> pl.Series:
    """Which rows of the framework's own work belong to some events: other code of the job stays."""
    is_its = take(host_codes(case.trace), rows["named_by"]) == FRAMEWORK
    mine = take(events, rows["named_by"]).fill_null(False)
    if "event" in rows.columns:
        mine |= take(events, rows["event"]).fill_null(False)
    return mine & ((parts == "dispatch") | is_its.fill_null(False))
