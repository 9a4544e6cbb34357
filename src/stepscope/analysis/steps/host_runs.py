"""Programs that the CPU itself runs behind the host: JAX calls them without waiting, and its threads run them later.

A call that hands a program over is matched with the run in the order of both. Short programs run inside the call.
"""

from __future__ import annotations

import polars as pl

from stepscope.trace.frames import take
from stepscope.trace.kept import kept_with_trace
from stepscope.trace.lookup import is_named
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

_FUNCTION = r"^PjitFunction\("
_CALL = r"Executable::ExecuteHelper"
_RUN = r"^ThunkExecutor::Execute"
_RUN_ENDS = r"^ThunkExecutor::Execute \(wait for completion\)$"
_RUNS = {"id": pl.UInt32, "at_ns": pl.Int64, "start_ns": pl.Int64, "end_ns": pl.Int64}


@kept_with_trace
def host_runs(trace: Trace) -> pl.DataFrame:
    """id (of what names it: the call of the function), at_ns (when that was), start_ns, end_ns of the runs, in the order of their calls.

    Empty where programs run in their calls.
    """
    events = trace.events
    calls = is_named(events, _CALL)
    if not calls.any():
        return pl.DataFrame(schema=_RUNS)
    calling = ancestors(events, calls)
    inside = calling.filter(is_named(events, _RUN) & calling.is_not_null()).unique()
    called = events.filter(calls & calling.is_null() & ~events["id"].is_in(inside.implode())).sort("start_ns")
    threads = events["track"].filter(calls).unique()
    ends = is_named(events, _RUN_ENDS) & (events["depth"] == 0) & ~events["track"].is_in(threads.implode())
    runs = events.filter(ends).sort("start_ns")
    # A run whose call came before the recording has none.
    runs = runs.tail(len(called)) if len(runs) > len(called) else runs
    called = called.head(len(runs))
    function = take(ancestors(events, is_named(events, _FUNCTION)), called["id"])
    return pl.DataFrame(
        {
            "id": pl.select(pl.coalesce(function, runs["id"])).to_series(),
            "at_ns": called["start_ns"],
            "start_ns": runs["start_ns"],
            "end_ns": runs["start_ns"] + runs["dur_ns"],
        }
    )


def runs_in_calls(trace: Trace) -> pl.DataFrame:
    """id, start_ns, end_ns of the runs that end inside the call of their function, on its thread."""
    events = trace.events
    ends = is_named(events, _RUN_ENDS) & ancestors(events, is_named(events, _CALL)).is_not_null()
    runs = events.filter(ends)
    function = take(ancestors(events, is_named(events, _FUNCTION)), runs["id"])
    found = runs.with_columns(function=function).drop_nulls("function")
    return found.select(
        id="function", start_ns="start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns")
    ).sort("start_ns")


def with_runs(trace: Trace, host: pl.DataFrame, begins: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Where each step begins and ends with the runs that it called: not before those of earlier calls have ended."""
    runs = host_runs(trace)
    if runs.is_empty():
        return begins, host["end_ns"]
    reached = runs["end_ns"].cum_max()
    called = [
        runs["at_ns"].search_sorted(times, side="left").cast(pl.Int64) for times in (begins, host["end_ns"])
    ]
    first, last = (
        pl.select(pl.when(count > 0).then(take(reached, (count - 1).clip(lower_bound=0)))).to_series()
        for count in called
    )
    rows = pl.DataFrame({"begin": begins, "first": first, "end": host["end_ns"], "last": last})
    return (
        rows.select(pl.max_horizontal("begin", "first")).to_series(),
        rows.select(pl.max_horizontal("end", "last")).to_series(),
    )
