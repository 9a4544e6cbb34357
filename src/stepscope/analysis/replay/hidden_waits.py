"""Waits for the device inside calls of PyTorch that build something: a library that loads the code it has made waits, and nothing records that.

cuDNN compiles a plan for each new length of an attention, for instance. Such a call takes its own time if the device has little to do,
as in the first step of a recording, and otherwise goes on until the device has run dry. The shortest of them that hardly waited says
what they take by themselves; a longer one that ended so soon after the device waited for the rest.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.account.host_timeline import host_timeline, main_track
from stepscope.analysis.account.unrecorded_waits import WAITS, busy_times
from stepscope.analysis.steps.find import Steps
from stepscope.registers.calibration.launches import HIDDEN_WAIT_CALL_NS
from stepscope.registers.policy.findings import MAJORITY
from stepscope.trace.frames import conform, take_largest, take_smallest
from stepscope.trace.trace import Trace


def hidden_waits(trace: Trace, steps: Steps) -> pl.DataFrame:
    """track, start_ns, end_ns, dry_ns, named_by of the waits on the main thread, in time order."""
    nothing = pl.DataFrame(schema=WAITS)
    if trace.info.framework != "pytorch" or steps.host.is_empty():
        return nothing
    busy = busy_times(trace)
    silences = _silences(trace, steps)
    if busy.is_empty() or silences.is_empty():
        return nothing
    place = busy["start_ns"].search_sorted(silences["start_ns"], side="right").cast(pl.Int64) - 1
    dry = busy["end_ns"].gather(place.clip(lower_bound=0)).set(place < 0, None)
    ran_dry = silences.with_columns(dry_ns=pl.max_horizontal(pl.lit(dry).fill_null(0), "start_ns"))
    ran_dry = ran_dry.filter(pl.col("dry_ns") < pl.col("end_ns"))
    length, waited = pl.col("end_ns") - pl.col("start_ns"), pl.col("dry_ns") - pl.col("start_ns")
    alone = ran_dry.filter(waited < (1 - MAJORITY) * length).group_by("name").agg(own=length.min())
    known = ran_dry.join(alone, on="name")
    # What it does before it waits, and after the device is done, takes as long as one of them alone.
    from_ns = pl.col("start_ns") + pl.col("own") - (pl.col("end_ns") - pl.col("dry_ns"))
    found = known.filter(from_ns >= pl.col("start_ns"), from_ns < pl.col("dry_ns")).with_columns(
        start_ns=from_ns, end_ns="dry_ns", named_by="event"
    )
    return conform(found, WAITS).sort("start_ns")


def _silences(trace: Trace, steps: Steps) -> pl.DataFrame:
    """Long intervals inside an op of the main thread in which it calls nothing, inside the steps."""
    low, high = take_smallest(steps.host["start_ns"]), take_largest(steps.host["end_ns"])
    span = pl.DataFrame(
        {"gap": [0], "start_ns": [low], "end_ns": [high], "track": [main_track(trace, steps)]},
        schema={"gap": pl.UInt32, "start_ns": pl.Int64, "end_ns": pl.Int64, "track": pl.UInt32},
    )
    pieces = host_timeline(trace).cut(span, longer_than=HIDDEN_WAIT_CALL_NS).drop_nulls("event")
    events = trace.events
    named = pieces.with_columns(name=events["name"].gather(pieces["event"]).cast(pl.String))
    return named.filter(events["kind"].gather(pieces["event"]) == "op")
