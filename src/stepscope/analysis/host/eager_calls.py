"""Calls of TensorFlow's eager runtime: `EagerLocalExecute: X` around an op, or around a run of a traced function.

The call finds a kernel, checks its inputs and hands it over. What computes is the kernel, inside `KernelAndDevice…::Run`:
recent profiles have no event of the op itself there. A run that takes as long as one of an op without any
work computes nothing either. A function that was just traced is instantiated and optimised in its first call; frames that are
sampled in there wait for it.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.host.activity import self_time
from stepscope.registers.calibration.launches import EMPTY_KERNEL_RUN_NS, LONG_HOST_NS
from stepscope.trace.columns import repeated
from stepscope.trace.frames import filled, kept_with_frame, take
from stepscope.trace.lookup import is_named
from stepscope.trace.scopes import ancestors, at_or_inside

CALL = r"^Eager(Local|Remote)Execute: "
FUNCTION_CALL = rf"{CALL}__(inference|forward|backward)_"
_FUNCTION = r"__(?:inference|forward|backward)_(.+)_\d+$"
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
    return (call | around.is_not_null()) & ~at_or_inside(events, computes)


@kept_with_frame
def around_frames(events: pl.DataFrame) -> pl.Series:
    """For each event itself, or for a Python frame the closest event around it that is none.

    Inside a call of the runtime, sampled frames say only who called: Python waits there. Without tracing, each event is its own.
    """
    frame = events["kind"] == "python"
    if not frame.any() or not is_named(events, TRACING).any():
        return events["id"]
    around = pl.when(frame).then(ancestors(events, ~frame)).otherwise(events["id"])
    return pl.select(pl.coalesce(around, events["id"])).to_series()


def around_tracing(events: pl.DataFrame) -> pl.Series:
    """For each event the tracing that it serves, or null: the call of a function that traces it, and frames of nothing else inside.

    What a call does around the tracing (it looks for a graph, describes its arguments, makes the new function) takes hardly
    any time in one that finds a graph. Its event has the function's name, and the run of what was traced is inside.
    """
    tracing, call = is_named(events, TRACING), is_named(events, FUNCTION_CALL)
    nothing = repeated(None, len(events), pl.UInt32)
    if not call.any() or not tracing.any():
        return nothing
    around = ancestors(events, events["kind"] != "python")
    outer = pl.DataFrame({"id": around, "tracing": events["id"]}).filter(tracing).drop_nulls("id")
    outer = outer.filter(events["kind"].gather(outer["id"]) == "annotation").unique("id", keep="first")
    closest = ancestors(events, events["id"].is_in(outer["id"].implode()))
    calls = (
        pl.DataFrame({"id": closest, "function": events["name"].cast(pl.String)})
        .filter(call)
        .drop_nulls("id")
    )
    calls = calls.with_columns(
        pl.col("function").str.extract(_FUNCTION), name=events["name"].gather(calls["id"]).cast(pl.String)
    )
    own = outer.join(calls.filter(pl.col("function") == pl.col("name")), on="id", how="semi")
    return take(nothing.scatter(own["id"], own["tracing"]), around_frames(events))


def first_calls(events: pl.DataFrame) -> pl.Series:
    """Calls of functions that were traced just before, in the same step, and that the recording has no other call of.

    Between the call and the run of its kernel passes the time in which the function is instantiated.
    """
    call = is_named(events, FUNCTION_CALL)
    tracing = is_named(events, TRACING)
    if not call.any() or not tracing.any():
        return repeated(False, len(events), pl.Boolean)
    own = (
        events.select(id=around_frames(events), self_ns=self_time(events))
        .group_by("id")
        .agg(pl.col("self_ns").sum())
    )
    rows = events.select("id", "name", "track", "step", "start_ns").filter(call).join(own, on="id")
    traced = events.select("track", "step", traced_ns="start_ns").filter(tracing)
    since = traced.group_by("track", "step").agg(pl.col("traced_ns").min())
    rows = rows.filter(pl.len().over("name") == 1, pl.col("self_ns") >= LONG_HOST_NS)
    rows = rows.join(since, on=["track", "step"]).filter(pl.col("traced_ns") < pl.col("start_ns"))
    return repeated(False, len(events), pl.Boolean).scatter(rows["id"], True)
