"""Launches that wait because the device's queue is full.

A rank that waits for others goes on launching until its device takes no more; then each launch lasts until the device has done something.
Its host does nothing meanwhile, though its thread is in a call.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.steps.work import launches_of
from stepscope.registers.policy.job import BLOCKED_LAUNCH
from stepscope.trace.frames import kept, take, take_median
from stepscope.trace.trace import Trace

BLOCKED = {"step": pl.Int32, "blocked_ns": pl.Int64}


def blocked_launches(trace: Trace, host: pl.DataFrame) -> pl.DataFrame:
    """BLOCKED: what launches of each step, with what leads up to it, took longer than usual while work was waiting before them."""
    events, launches = trace.events, launches_of(trace)
    calls = pl.DataFrame(
        {
            "start": take(events["start_ns"], launches["from"]),
            "dur": take(events["dur_ns"], launches["from"]),
            "begun": take(events["start_ns"], launches["to"]),
        }
    )
    usual = take_median(calls["dur"])
    if not (calls["dur"] > BLOCKED_LAUNCH * usual).any() or host.is_empty():
        return pl.DataFrame(schema=BLOCKED)
    calls = calls.sort("start", maintain_order=True)
    # What was launched before is still waiting when the launch is over.
    was_full = calls["begun"].shift(1) >= calls["start"] + calls["dur"]
    found = kept(calls, (calls["dur"] > BLOCKED_LAUNCH * usual) & was_full)
    place = host["end_ns"].search_sorted(found["start"], side="left")
    rows = pl.DataFrame({"place": place, "blocked_ns": found["dur"] - round(usual)})
    sums = kept(rows, place < len(host)).group_by("place").agg(pl.col("blocked_ns").sum())
    return pl.DataFrame(
        {"step": take(host["step"], sums["place"]).cast(pl.Int32), "blocked_ns": sums["blocked_ns"]}
    )
