"""A loop of PyTorch's ops on a host that computes by itself: for each row, parameter or time step.

Short ops cost what it takes to call them, whatever they compute: one for all turns costs as much as one of a turn. A long op computes,
and takes little less time as a part of a larger one.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.loops.derivatives import speak_of_derivatives
from stepscope.analysis.findings.loops.slices import parts_of_slices
from stepscope.analysis.findings.programs.host_ops import left_of_step
from stepscope.analysis.findings.promise import timed
from stepscope.analysis.findings.rule import Rule
from stepscope.analysis.host.carried_state import CELLS
from stepscope.analysis.host.functions import where
from stepscope.analysis.host.loop_backward import with_backward
from stepscope.analysis.host.loops import Loops
from stepscope.analysis.ops.sliced_gradients import sliced_gradients
from stepscope.registers.calibration.recurrent import RECURRENT_HOST_LEAST, RECURRENT_HOST_MOST
from stepscope.registers.policy.findings import BATCHED_OPS_MOST, LOOP_LEAST, MAJORITY, TOP_NAMES
from stepscope.registers.policy.host_code import BATCHED_LONG_OP_LEAST, SHORT_HOST_OP_NS
from stepscope.trace.columns import repeated
from stepscope.trace.lookup import events_named

_OWNED = ("host_compute", "dispatch", "python")
_ENGINE = "autograd::engine::evaluate_function: "


def find_host_loop(case: Case, rule: Rule[Case], in_optimizer: pl.Series) -> Finding | None:
    """The loops of a step, with their backward pass; that of the optimizer is a finding of its own (`in_optimizer`: by event)."""
    loops = case.loops
    if loops.found.is_empty():
        return None
    owned = host_time_of(case, with_backward(case.trace, loops), in_optimizer)
    ns = case.per_step(owned)
    if ns < LOOP_LEAST * case.step_ns:
        return None
    longest = owned.group_by("frame").agg(pl.col("ns").sum(), pl.col("iterations").first())
    frame, times = (
        longest.sort(["ns", "frame"], descending=[True, False]).select("frame", "iterations").row(0)
    )
    detail = f"{case.of_step(ns)} passes in a loop that does the same work about {times:,.0f} times, piece by piece."
    left = left_of_step(case, shortened(case, owned, loops))
    found = timed(case, rule, owned, case.plan, detail, {"iterations": round(times)}, accounted=left)
    found.where = where(case.trace, pl.Series([frame], dtype=pl.UInt32))[:TOP_NAMES]
    speak_of_derivatives(case, found, frame)
    return found


def host_time_of(case: Case, loops: Loops, in_optimizer: pl.Series) -> pl.DataFrame:
    """The free slices of these loops, with `frame` and `iterations`."""
    frames = pl.select(
        pl.when(~in_optimizer).then(_with_engine(case.trace.events, loops.loop_of))
    ).to_series()
    free = case.free(pl.col("part").is_in(_OWNED))
    owned = free.with_columns(frame=frames.gather(free["named_by"])).drop_nulls("frame")
    return owned.join(loops.found.select("frame", "iterations"), on="frame", maintain_order="left")


def _with_engine(events: pl.DataFrame, loop_of: pl.Series) -> pl.Series:
    """The same with the calls of the backward pass that mostly computes gradients of one loop: what they do between its ops goes with it."""
    nodes = events_named(events, lambda names: names.str.starts_with(_ENGINE))
    rows = pl.DataFrame({"call": events["parent"].filter(nodes), "frame": loop_of.filter(nodes)})
    counts = rows.drop_nulls("call").group_by("call", "frame").len()
    mostly = counts.filter(pl.col("len") > MAJORITY * pl.col("len").sum().over("call")).drop_nulls("frame")
    called = pl.repeat(None, len(events), dtype=loop_of.dtype, eager=True).scatter(
        mostly["call"], mostly["frame"]
    )
    return pl.select(pl.coalesce(loop_of, called)).to_series()


def shortened(case: Case, owned: pl.DataFrame, loops: Loops) -> pl.DataFrame:
    """The slices with least and most: what is left of each."""
    events = case.trace.events
    cells = events_named(events, lambda names: names.str.contains(CELLS)) & loops.loop_of.is_not_null()
    recurrent = pl.col("frame").is_in(loops.loop_of.filter(cells).unique().implode())
    is_long, is_whole = pl.lit(_computes(events, owned)), pl.lit(_makes_wholes(case, owned))
    least, most = (1 / pl.col("iterations"), (BATCHED_OPS_MOST / pl.col("iterations")).clip(upper_bound=1.0))
    return owned.with_columns(
        least=pl.when(is_whole)
        .then(least)
        .when(is_long)
        .then(BATCHED_LONG_OP_LEAST)
        .when(recurrent)
        .then(RECURRENT_HOST_LEAST)
        .otherwise(least),
        most=pl.when(is_whole)
        .then(most)
        .when(is_long)
        .then(1.0)
        .when(recurrent)
        .then(RECURRENT_HOST_MOST)
        .otherwise(most),
    )


def _makes_wholes(case: Case, owned: pl.DataFrame) -> pl.Series:
    """Which slices fill or add whole tensors for slices of them: one op for all turns takes no slices, however long these take."""
    nodes = sliced_gradients(case.trace)
    if nodes.is_empty():
        return repeated(False, len(owned), pl.Boolean)
    parts = parts_of_slices(case.trace, nodes).filter(~pl.col("is_copy"))
    return owned["named_by"].is_in(parts["event"].implode())


def _computes(events: pl.DataFrame, owned: pl.DataFrame) -> pl.Series:
    """Which slices are of ops that usually take long; a single one may only have waited for a core."""
    is_op = (events["kind"] == "op").gather(owned["named_by"])
    ops = owned.filter(is_op).group_by("frame", "name", "named_by").agg(pl.col("ns").sum())
    usual = ops.group_by("frame", "name").agg(pl.col("ns").median())
    long = usual.filter(pl.col("ns") >= SHORT_HOST_OP_NS).select("frame", "name", long=pl.lit(True))
    joined = owned.select("frame", "name").join(long, on=["frame", "name"], how="left", maintain_order="left")
    return is_op & joined["long"].fill_null(False)
