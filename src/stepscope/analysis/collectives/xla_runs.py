"""Runs of compiled programs on the host: which one a collective belongs to, and the step that launched it.

JAX dispatches and goes on: where nobody waits for results, a program runs long after the step that asked for it. Runs come
in the order of the launches.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.host.program_calls import name_call
from stepscope.registers.calibration.launches import AGREED_RUN_ID
from stepscope.trace.frames import conform
from stepscope.trace.trace import Trace

RUNS = {"event": pl.UInt32, "run": pl.Int64, "launched_in": pl.Int32}
_PREFIX = "jit_"


def program_runs(trace: Trace, events: pl.Series) -> pl.DataFrame:
    """RUNS of those of the events that tell their run: its number, where processes agreed on it, and the step of its launch."""
    told = _told(trace, events)
    if told.is_empty():
        return pl.DataFrame(schema=RUNS)
    found = [_with_steps(trace, rows, str(module)) for (module,), rows in told.group_by("module")]
    run = pl.when(pl.col("run") >= AGREED_RUN_ID).then("run")
    return conform(pl.concat(found).with_columns(run=run), RUNS)


def _told(trace: Trace, events: pl.Series) -> pl.DataFrame:
    """event, run, module, start_ns."""
    numbers, texts = trace.cold.get("stats_int"), trace.cold.get("stats_text")
    if numbers is None or texts is None or events.is_empty():
        return pl.DataFrame()
    runs = _stat(numbers, events, "run_id").rename({"value": "run"})
    modules = _stat(texts, events, "hlo_module").rename({"value": "module"})
    rows = runs.join(modules, on="event").with_columns(pl.col("module").cast(pl.String))
    return rows.with_columns(trace.events["start_ns"].gather(rows["event"]))


def _stat(stats: pl.DataFrame, events: pl.Series, name: str) -> pl.DataFrame:
    wanted = pl.col("event").is_in(events.implode()) & (pl.col("key").cast(pl.String) == name)
    return stats.filter(wanted).select("event", "value").unique("event", keep="first", maintain_order=True)


def _with_steps(trace: Trace, rows: pl.DataFrame, module: str) -> pl.DataFrame:
    """With the steps of the launches, where there are as many as runs."""
    runs = rows.group_by("run").agg(pl.col("start_ns").min()).sort("start_ns")
    steps = _launches(trace, module.removeprefix(_PREFIX))
    if len(steps) != len(runs):
        return rows.with_columns(launched_in=pl.lit(None, dtype=pl.Int32))
    launched = runs.select("run").with_columns(steps.alias("launched_in"))
    return rows.join(launched, on="run", how="left", maintain_order="left")


def _launches(trace: Trace, function: str) -> pl.Series:
    """The steps in which the function was called, in order; a call inside a call of the same is no other."""
    events = trace.events
    calls = events.filter(pl.col("name").cast(pl.String) == name_call(function))
    inner = calls["parent"].is_in(calls["id"].implode()).fill_null(False)
    return calls.filter(~inner).sort("start_ns")["step"]
