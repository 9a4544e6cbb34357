"""Work in a loop of a compiled program that could be done for all turns at once, before or after it."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.compute.classes import PRODUCTS
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import shorten_kernels, timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.rules.kernels.small_kernels_in_loop import turning_kernels
from stepscope.analysis.xla.hlo_module import read_module
from stepscope.analysis.xla.loops import LoopWork, loop_work
from stepscope.analysis.xla.moving import moving_kernels
from stepscope.analysis.xla.ops import programs_that_ran
from stepscope.registers.policy.compute import SMALL_KERNEL_NS
from stepscope.registers.policy.findings import LOOP_LEAST, WORTH_SHOWING
from stepscope.registers.policy.repeated_work import (
    OUTSIDE_EFFICIENCY_LEAST,
    OUTSIDE_EFFICIENCY_MOST,
    OUTSIDE_LEAST,
    OUTSIDE_MOST,
)


def find(case: Case) -> Finding | None:
    """Small kernels of a loop that do not depend on the turn before, or that no later turn needs."""
    if not case.runs_programs or case.kernels.is_empty():
        return None
    turning = turning_kernels(case)
    small = int(turning["dur_ns"].sum()) / max(1, len(case.lengths))
    if small < LOOP_LEAST * case.step_ns:
        return None
    work = _work_of_loops(case)
    name = case.trace.events["name"].gather(turning["event"]).cast(pl.String)
    mine = turning.filter(name.is_in(list(work.leaving)))
    # Sums of gradients, which no later turn needs, every loop has, and copies of what a turn works on: a mistake shows by what computes
    # without the turn before.
    early = work.early - _moving(case)
    before = int(turning.filter(name.is_in(list(early)))["dur_ns"].sum()) / max(1, len(case.lengths))
    if mine.is_empty() or before < WORTH_SHOWING * case.step_ns:
        return None
    count = round(len(mine) / max(1, len(case.lengths)))
    why = (
        f"is spent in {count:,} small kernels that a loop inside the program runs turn by turn, though they "
        "do not need the turn before, or no later turn needs them."
    )
    owned = case.free(pl.col("part") == "compute", pl.col("named_by").is_in(mine["event"].implode()))
    ns = case.per_step(owned)
    if ns < LOOP_LEAST * case.step_ns:
        return None
    change = _outside(case, mine, _long_ones(case, work), work)
    return timed(case, RULE, owned, change, f"{case.of_step(ns)} {why}", {"kernels_per_step": count})


def _long_ones(case: Case, work: LoopWork) -> pl.DataFrame:
    """Longer kernels that may leave because no later turn needs them: products and sums that make the gradients of weights."""
    late = work.leaving - work.early
    name = case.trace.events["name"].gather(case.kernels["event"]).cast(pl.String)
    late_ones = case.kernels.filter(name.is_in(list(late)) & (pl.col("dur_ns") >= SMALL_KERNEL_NS))
    return late_ones.drop_nulls("step").select("event")


def _outside(case: Case, mine: pl.DataFrame, long: pl.DataFrame, work: LoopWork) -> Change:
    """A few large kernels do the work; the program is launched in pieces, which have fewer kernels then.

    At least the small kernels leave; at most all that makes gradients does, though some are of weights whose products stay.
    """
    both = pl.concat([mine.select("event"), long]).unique("event", maintain_order=True)
    small = shorten_kernels(case, _chosen(case, mine, work)).smallest
    large = shorten_kernels(case, _chosen(case, both, work)).largest
    launched = int((case.plan.items["device_ns"] > 0).sum())
    dispatch = pl.col("cause") == "dispatch"
    return Change(
        *(
            plan.with_host(dispatch, max(0.0, 1 - len(gone) / max(1, launched)))
            for plan, gone in ((small, mine), (large, both))
        )
    )


def _work_of_loops(case: Case) -> LoopWork:
    """What may leave the loops of all programs that ran."""
    codes = {hlo for _, _, hlo in programs_that_ran(case.trace)}
    found = [loop_work(read_module(hlo)) for hlo in codes]
    staying = {name for one in found for name in one.staying}
    leaving = {name for one in found for name in one.leaving} - staying
    early = {name for one in found for name in one.early} & leaving
    sums = {name for one in found for name in one.sums} & leaving
    return LoopWork(frozenset(leaving), frozenset(staying), frozenset(early), frozenset(sums))


def _moving(case: Case) -> set[str]:
    """What only picks and moves in the loops of all programs that ran."""
    codes = {hlo for _, _, hlo in programs_that_ran(case.trace)}
    return {name for hlo in codes for name in moving_kernels(read_module(hlo))}


def _chosen(case: Case, mine: pl.DataFrame, work: LoopWork) -> pl.DataFrame:
    """event, least, most: what the same work takes in a few large kernels."""
    rows = case.compute.kernels.join(mine.select("event"), on="event", how="semi", maintain_order="left")
    known = {name: float((case.peaks and case.peaks.flops_per_s(name)) or 0) for name in _formats(rows)}
    peak = pl.col("precision").replace_strict(
        list(known), list(known.values()), default=None, return_dtype=pl.Float64
    )
    product = pl.col("class").is_in(PRODUCTS)
    computing = pl.when(peak > 0).then(pl.col("flops") / peak * 1e9 / pl.col("time_ns")).fill_null(0.0)
    name = case.trace.events["name"].gather(rows["event"]).cast(pl.String)
    rows = rows.with_columns(is_sum=name.is_in(list(work.sums))).filter(pl.col("time_ns") > 0)
    rows = rows.with_columns(
        computing=pl.when(product).then(computing).otherwise(0.0),
        large=(pl.col("time_ns") >= SMALL_KERNEL_NS) & ~product & ~pl.col("is_sum"),
    )

    def left(least: float, efficiency: float) -> pl.Expr:
        share = pl.max_horizontal(pl.lit(least), pl.col("computing") / efficiency).clip(upper_bound=1.0)
        return pl.when("large").then(1.0).otherwise(share)

    return rows.select(
        "event",
        least=left(OUTSIDE_LEAST, OUTSIDE_EFFICIENCY_MOST),
        most=left(OUTSIDE_MOST, OUTSIDE_EFFICIENCY_LEAST),
    )


def _formats(kernels: pl.DataFrame) -> list[str]:
    return [name for name in kernels["precision"].unique().to_list() if name]


RULE: Rule[Case] = Rule(
    code="work-in-loop",
    title="A loop repeats work that could be done at once",
    turn=194,
    page="kernels",
    owns="small kernels in a loop of a compiled program that do not depend on the previous iteration, or that no later iteration needs",
    change="they are not launched one by one; 5 to 40 % of their own time remains, products reach 30 to 70 % of the peak. At best, longer kernels that accumulate gradients in each iteration leave the loop as well",
    fix={
        "jax": "Take it out of the loop (lax.scan, fori_loop, lax.map): compute for all turns at once what does not depend on the carry, as one large product before the loop; return what no later turn needs, and work on it after the loop; jax.vmap instead of lax.map. Join products of the same input (the gates of a cell) into one.",
        "tensorflow": "Take it out of the loop (tf.while_loop, the cell of an RNN): compute for all turns at once what does not depend on the state, as one large product; tf.vectorized_map instead of tf.map_fn.",
        ANY: "Take it out of the loop: compute for all turns at once what does not depend on the turn before.",
    },
    find=find,
    needs_device=True,
)
