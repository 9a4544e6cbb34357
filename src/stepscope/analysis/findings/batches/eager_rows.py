"""Batches that a function of the job puts together from rows of JAX arrays: each index, and each stack of rows, is a program of its own.

One index for all rows is one program, and NumPy arrays need none. The loop makes such batches itself, so that nearly all of their time goes.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.host.causes import host_codes
from stepscope.analysis.host.program_calls import PROGRAM_CALLS
from stepscope.analysis.steps.host_runs import runs_in_calls
from stepscope.lazy import dataclass
from stepscope.native.host.lineage import FRAMEWORK
from stepscope.registers.policy.findings import EAGER_CALLS, MAJORITY
from stepscope.trace.frames import take
from stepscope.trace.lookup import is_named
from stepscope.trace.scopes import ancestors, at_or_inside, sums_below

_FIX = "Take each batch with one index for all of its rows, rows[order[start : start + size]], instead of row by row: keep the data in NumPy arrays, or index the JAX array once with an array of positions. Map functions of one row over the batch with jax.vmap. Each index of a JAX array and each jnp.stack is a call of a program of its own."


@dataclass(frozen=True)
class EagerRows:
    """`calls`: the programs that a step calls to make its batch; `computed_ns`: for how long they run, if the host runs them."""

    calls: int
    computed_ns: int

    def left(self, case: Case, owned_ns: float) -> Interval:
        """What is left of a step: at best nothing of the owned time, at worst what is computed.

        A profiler slows Python down more than programs: at worst, the rest takes as long without it as recorded.
        """
        rest = case.step_ns - owned_ns
        ends = rest / case.step_ns, min(1.0, (rest + self.computed_ns) / min(case.basis_ns, case.step_ns))
        return Interval(ends[0], (ends[0] * ends[1]) ** 0.5, ends[1])


def find_eager_rows(case: Case, owned: pl.DataFrame) -> EagerRows | None:
    """If most of the owned time goes into calls of the same few programs again and again, and not into running these."""
    if case.trace.info.framework != "jax" or owned.is_empty():
        return None
    events = case.trace.events
    making = pl.repeat(False, len(events), dtype=pl.Boolean, eager=True)
    making = making.scatter(owned["named_by"].drop_nulls().unique(), True)
    inside = at_or_inside(events, making) & events["step"].is_in(owned["step"].unique().implode())
    calls = inside & is_named(events, PROGRAM_CALLS)
    outer = calls & ancestors(events, calls).is_null()
    counts = events["name"].filter(outer).value_counts()
    often = counts.filter(pl.col("count") >= EAGER_CALLS * case.step_count)["count"]
    if int(often.sum()) <= MAJORITY * int(outer.sum()):
        return None
    around = inside & (host_codes(case.trace) == FRAMEWORK) & (sums_below(events, outer) > 0)
    either = calls | around
    called_ns = int(events["dur_ns"].filter(either & ancestors(events, either).is_null()).sum())
    runs = runs_in_calls(case.trace)
    ran_ns = int((runs["end_ns"] - runs["start_ns"]).filter(take(inside, runs["id"])).sum())
    if called_ns - ran_ns <= MAJORITY * int(owned["ns"].sum()):
        return None
    return EagerRows(int(outer.sum()) // case.step_count, ran_ns // case.step_count)


def advise_one_index(found: Finding, rows: EagerRows) -> Finding:
    """The finding with advice that fits to many small calls."""
    found.fix = _FIX
    found.detail += f" The batch is put together by {rows.calls} calls of small programs in each step."
    found.evidence = {**found.evidence, "calls_of_programs": rows.calls}
    return found
