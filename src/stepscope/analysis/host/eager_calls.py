"""Calls of TensorFlow's eager runtime: `EagerLocalExecute: X` around an op, or around a run of a traced function.

The call finds a kernel, checks its inputs and hands it over. What computes is the kernel, inside `KernelAndDevice…::Run`:
recent profiles have no event of the op itself there. A run that takes as long as one of an op without any
work computes nothing either. A function that was just traced is instantiated and optimised in its first call.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.host.activity import is_named, self_time
from stepscope.registers.calibration.launches import EMPTY_KERNEL_RUN_NS, LONG_HOST_NS
from stepscope.trace.columns import repeated
from stepscope.trace.frames import filled, take
from stepscope.trace.scopes import ancestors

CALL = r"^Eager(Local|Remote)Execute: "
FUNCTION_CALL = rf"{CALL}__(inference|forward|backward)_"
TRACING = r"^tf\.function-graph_building"
_RUN = r"^KernelAndDevice\w*::Run"


def only_dispatch(events: pl.DataFrame) -> pl.Series:
    """Eager calls and what is inside them, but for the runs of kernels that compute and of whole functions."""
    call = is_named(events, CALL)
    if not call.any():
        return call
    around = ancestors(events, call)
    run = is_named(events, _RUN) & around.is_not_null()
    if not run.any():
        return call | around.is_not_null()
    around_run = ancestors(events, run)
    of_function = filled(take(is_named(events, FUNCTION_CALL), around))
    has_op = around_run.filter(events["kind"] == "op").drop_nulls().unique()
    long = (events["dur_ns"] >= EMPTY_KERNEL_RUN_NS).scatter(has_op, False)
    computes = run & (of_function | long)
    return (call | around.is_not_null()) & ~(computes | _is_inside(computes, around_run))


def _is_inside(chosen: pl.Series, around: pl.Series) -> pl.Series:
    """Events somewhere inside chosen ones; `around` is for each event the closest that may be chosen."""
    inside = filled(take(chosen, around))
    while True:
        more = inside | filled(take(inside, around))
        if (more == inside).all():
            return inside
        inside = more


def first_calls(events: pl.DataFrame) -> pl.Series:
    """Calls of functions that were traced just before, in the same step, and that the recording has no other call of.

    Between the call and the run of its kernel passes the time in which the function is instantiated.
    """
    call = is_named(events, FUNCTION_CALL)
    tracing = is_named(events, TRACING)
    if not call.any() or not tracing.any():
        return repeated(False, len(events), pl.Boolean)
    rows = events.select("id", "name", "track", "step", "start_ns", self_ns=self_time(events)).filter(call)
    traced = events.select("track", "step", traced_ns="start_ns").filter(tracing)
    since = traced.group_by("track", "step").agg(pl.col("traced_ns").min())
    rows = rows.filter(pl.len().over("name") == 1, pl.col("self_ns") >= LONG_HOST_NS)
    rows = rows.join(since, on=["track", "step"]).filter(pl.col("traced_ns") < pl.col("start_ns"))
    return repeated(False, len(events), pl.Boolean).scatter(rows["id"], True)
