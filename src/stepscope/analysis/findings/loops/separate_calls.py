"""A compiled model that Python calls for one input after the other, where one call would take all: a policy for each of many robots.

That none of the calls needs another one is known by their shapes and by what the host does between them. No result has the shape of
an input, so that no call is given what another returned, and the host does nothing with what it reads: it calls no other function.
"""

from __future__ import annotations

import math

import polars as pl

from stepscope.analysis.account.host_timeline import within
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.loops.joined_passes import (
    TRAINS,
    Passes,
    chosen_of,
    given_to,
    left_of,
    results_of,
)
from stepscope.analysis.findings.program_runs import ProgramRuns, program_runs
from stepscope.analysis.findings.promise import timed
from stepscope.analysis.findings.rule import Rule
from stepscope.analysis.host.causes import is_wait
from stepscope.analysis.host.functions import where
from stepscope.analysis.host.program_calls import name_call
from stepscope.analysis.replay.plan import Plan
from stepscope.analysis.xla.hlo_module import Module, read_module
from stepscope.analysis.xla.ops import programs_that_ran
from stepscope.analysis.xla.shared_weights import shared_weights
from stepscope.native.host import replay as native
from stepscope.registers.policy.findings import (
    BATCHED_EFFICIENCY_LEAST,
    BATCHED_EFFICIENCY_MOST,
    LOOP_ITERATIONS,
    LOOP_LEAST,
    MAJORITY,
    TOP_NAMES,
)
from stepscope.registers.policy.repeated_work import (
    FLOPS_OF_ONE_INPUT,
    PASSES_LEFT_MOST,
    SHARED_WEIGHTS_LEAST,
)
from stepscope.trace.lookup import is_named
from stepscope.trace.scopes import ancestors, sums_below

_TITLE = "A Python loop calls the model for each input, where one batch would do"
_FIX = "Stack the inputs and call the model once for all of them, with jax.vmap(model, in_axes=(None, 0)) if it takes a single one, and fetch all results together."
_KEEPS = r"(?i)\bappend\b|^\$builtins len$"  # what a list or a dictionary does with a result
_SENDS = r"BufferFromHostBuffer\(\w+\[([\d,]*)\]"
_IDLE = ("sync", "dispatch", "copy", "unexplained", "device_gap", "python")


def find_separate_calls(case: Case, rule: Rule[Case]) -> Finding | None:
    """A finding about a program that takes most of the runs of a step, called many times in a row."""
    runs = program_runs(case) if case.peaks is not None else None
    if runs is None or runs.loop is None:
        return None
    module = _independent(case, runs.loop)
    calls = _calls(case, runs) if module is not None else None
    if module is None or calls is None:
        return None
    times = int(calls["times"].median() or 0)  # type: ignore[arg-type]
    if times < LOOP_ITERATIONS:
        return None
    again = calls.filter(pl.col("place") > 0)
    free = case.free(pl.col("part").is_in(_IDLE))
    owned = free.filter(within(free["start_ns"], again["start_ns"], again["end_ns"]))
    ns = case.per_step(owned)
    chosen = _chosen(case, runs, times, module)
    if ns < LOOP_LEAST * case.step_ns or chosen is None:
        return None
    name, count = runs.name_of_loop(), len(calls) / runs.steps
    detail = (
        f"{case.of_step(ns)} passes in calls of {name} that none needs another one of: a step calls it {count:,.0f} times, "
        f"{times:,.0f} times in a row, each time for another input."
    )
    change = Change(*(_joined(case, chosen, again, left) for left in ("most", "least")))
    found = timed(case, rule, owned, change, detail, {"iterations": times}, title=_TITLE)
    found.fix, found.where = _FIX, where(case.trace, calls["caller"].unique(maintain_order=True))[:TOP_NAMES]
    return found


def _independent(case: Case, name: str) -> Module | None:
    """The code of a program with weights that is not given what it returns, and computes no gradients."""
    codes = {hlo for program, _, hlo in programs_that_ran(case.trace) if program == name}
    if len(codes) != 1 or any(sign in next(iter(codes)) for sign in TRAINS):
        return None
    module = read_module(next(iter(codes)))
    sent, given = _sent(case, name), [shape.sizes for shape in given_to(module)]
    results = [shape.sizes for shape in results_of(module)]
    # The result of a last layer is as long as its bias, which is given on the device; an input comes from the host.
    is_bias = len(results) == 1 and len(results[0]) == 1 and given.count(results[0]) == 1
    known = [] if sent and is_bias else given
    return None if any(sizes in sent or sizes in known for sizes in results) else module


def _sent(case: Case, name: str) -> set[tuple[int, ...]]:
    """The sizes of arrays that calls of a program send from the host."""
    events = case.trace.events
    inside = ancestors(events, _is_call(case, name)).is_not_null() & is_named(events, _SENDS)
    names = events["name"].filter(inside).cast(pl.String).unique()
    found = names.str.extract(_SENDS).drop_nulls()
    return {tuple(int(size) for size in text.split(",") if size) for text in found}


def _is_call(case: Case, name: str) -> pl.Series:
    call = name_call(name.removeprefix("jit_"))
    found: pl.Series = case.trace.events["name"].cast(pl.String).eq_missing(pl.Series([call]))
    return found


def _calls(case: Case, runs: ProgramRuns) -> pl.DataFrame | None:
    """start_ns, end_ns (where the next begins, or its result has been read), caller, place in a row of calls, times (its length).

    None where they are not as many as the runs, or not most of them are in rows of the same length.
    """
    events = case.trace.events
    call = _is_call(case, runs.loop or "")
    outer = call & ancestors(events, call).is_null() & events["step"].is_not_null()
    calls = (
        events.filter(outer)
        .sort("start_ns")
        .select("track", "start_ns", caller="parent", call_end=pl.col("start_ns") + pl.col("dur_ns"))
    )
    if len(calls) != int(runs.turns.sum()) or calls["caller"].null_count():
        return None
    between = _siblings(case, calls, outer)
    calls = calls.with_row_index("call").join(between, on="call", how="left", maintain_order="left")
    new = (pl.col("others").shift(fill_value=0).fill_null(0) > 0) | (
        pl.col("caller") != pl.col("caller").shift(fill_value=-1)
    )
    calls = calls.with_columns(row=new.cum_sum())
    calls = calls.with_columns(
        place=pl.int_range(pl.len()).over("row"),
        times=pl.len().over("row"),
        end_ns=pl.coalesce(
            pl.col("start_ns").shift(-1).over("row"), pl.max_horizontal("call_end", "read_end")
        ),
    )
    usual = calls["times"].mode().max()
    return calls if int((calls["times"] == usual).sum()) > MAJORITY * len(calls) else None


def _siblings(case: Case, calls: pl.DataFrame, outer: pl.Series) -> pl.DataFrame:
    """call, read_end, others: of what its caller calls up to the next call, when the last read is over, and how many do not read."""
    events = case.trace.events
    waits = sums_below(events, is_wait(case.trace)) > 0
    is_frame = (events["kind"] == "python") & ~is_named(events, _KEEPS)
    mine = events.select(
        "start_ns", "track", "parent", end=pl.col("start_ns") + pl.col("dur_ns"), reads=waits
    ).filter((is_frame | waits) & ~outer, events["parent"].is_in(calls["caller"].unique().implode()))
    rows = mine.sort("start_ns").join_asof(
        calls.with_row_index("call").select("start_ns", "call", parent="caller"),
        on="start_ns",
        by="parent",
        check_sortedness=False,
    )
    return (
        rows.drop_nulls("call")
        .group_by("call")
        .agg(read_end=pl.col("end").filter("reads").max(), others=(~pl.col("reads")).sum())
    )


def _chosen(case: Case, runs: ProgramRuns, times: int, module: Module) -> pl.DataFrame | None:
    """What one call for a whole row leaves of the time of each kernel; None where it leaves too much, or that is not known."""
    mine = runs.work.filter(pl.col("program") == pl.lit(runs.loop, pl.String))
    known = shared_weights(module)
    if known.weights >= SHARED_WEIGHTS_LEAST:
        passes = Passes(mine.select("event", sure=pl.lit(True), again=pl.lit(True)), times, known, "")
        chosen = chosen_of(case, passes)
    else:
        chosen = _of_vectors(case, mine, times, module)
    return chosen if len(chosen) and left_of(chosen) <= PASSES_LEFT_MOST else None


def _of_vectors(case: Case, mine: pl.DataFrame, times: int, module: Module) -> pl.DataFrame:
    """The same of a program that uses each weight for one input alone: it mostly reads them, and reads them once for all inputs.

    XLA writes such products as sums, which keep no sign of the weight that they take.
    """
    kernels = case.compute.kernels.filter(pl.col("time_ns") > 0)
    rows = kernels.join(mine.select("event", "run"), on="event", maintain_order="left")
    flops = float(rows["flops"].fill_null(0.0).sum()) / max(1, rows["run"].n_unique())
    weights = sum(shape.elements for shape in given_to(module) if len(shape.sizes) > 1)
    rate = (case.peaks.own_flops_per_s("fp32") or 0.0) / 1e9 if case.peaks else 0.0
    if not rate or flops > FLOPS_OF_ONE_INPUT * weights:
        return rows.clear()
    needed = pl.col("flops").fill_null(0.0) / rate / pl.col("time_ns")

    def share(least: float, efficiency: float) -> pl.Expr:
        return pl.max_horizontal(pl.lit(least), needed / efficiency).clip(upper_bound=1.0)

    return rows.select(
        "event",
        "time_ns",
        least=share(1 / times, BATCHED_EFFICIENCY_MOST),
        most=share(1 / math.sqrt(times), BATCHED_EFFICIENCY_LEAST),
    )


def _joined(case: Case, chosen: pl.DataFrame, again: pl.DataFrame, left: str) -> Plan:
    """The steps in which the first call of a row does all of it: the others are not made, waited for or read."""
    at = case.plan.items["at"]
    gone = within(at, again["start_ns"], again["end_ns"])
    shares = case.plan.items.join(chosen.select("event", left), on="event", how="left", maintain_order="left")
    is_kernel = shares[left].is_not_null()
    plan = case.plan.with_device(pl.lit(True), pl.lit(shares[left].fill_null(1.0)))
    plan = plan.with_device(pl.lit(gone & ~is_kernel & (case.plan.items["kind"] == native.WORK)))
    plan = plan.without_waits(pl.lit(gone))
    return plan.with_host(pl.lit(gone.gather(case.plan.host["item"])) & (pl.col("cause") != "input"))
