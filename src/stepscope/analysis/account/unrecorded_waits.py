"""Waits for the device that left no event: JAX's block_until_ready, and whatever else blocks inside a library.

A thread that does nothing recorded, in a user's frame or none, and goes on shortly after the device ran dry, again and
again, waits for the device. That is told only where it holds for nearly all such silences that began while the device was
busy, or for nearly all of their time: user code that takes its own time does not end when the device does, but before it waits
it may do a little that leaves no event, or its garbage be collected. PyTorch's waits are always recorded.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import polars as pl

from stepscope.analysis.account.host_timeline import Timeline, main_track
from stepscope.analysis.host.causes import host_causes
from stepscope.analysis.steps.find import Steps
from stepscope.native.spans.sets import union
from stepscope.registers.calibration.launches import (
    LAUNCH_LATENCY_NS,
    LEAST_WAIT_NS,
    WAIT_ENDS_LATEST_NS,
    WAIT_ENDS_WITHIN_NS,
    WAIT_ENDS_WITHIN_SHARE,
)
from stepscope.registers.policy.findings import SILENCE_SHARE, SILENCE_TIMES
from stepscope.trace.columns import buffer, series
from stepscope.trace.frames import conform, take_largest, take_smallest
from stepscope.trace.trace import Trace

WAITS = {
    "track": pl.UInt32,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "dry_ns": pl.Int64,
    "named_by": pl.UInt32,
}
_known: WeakKeyDictionary[Trace, pl.DataFrame] = WeakKeyDictionary()


def unrecorded_waits(trace: Trace, steps: Steps) -> pl.DataFrame:
    """track, start_ns, end_ns of the silence, dry_ns (when the device had nothing left), named_by, in time order."""
    found = _known.get(trace)
    if found is None:
        found = _known[trace] = _unrecorded_waits(trace, steps)
    return found


def _unrecorded_waits(trace: Trace, steps: Steps) -> pl.DataFrame:
    nothing = pl.DataFrame(schema=WAITS)
    if trace.info.framework == "pytorch" or steps.host.is_empty():
        return nothing
    busy = busy_times(trace)
    if busy.is_empty():
        return nothing
    silences = _silences(trace, steps, main_track(trace, steps))
    place = busy["start_ns"].search_sorted(silences["start_ns"], side="right").cast(pl.Int64) - 1
    # While the device worked when the silence began: when had it run dry?
    dry = busy["end_ns"].gather(place.clip(lower_bound=0))
    during = silences.with_columns(dry_ns=dry).filter(place >= 0, dry > silences["start_ns"] + LEAST_WAIT_NS)
    after = pl.col("end_ns") - pl.col("dry_ns")
    waited = (after >= 0) & (after <= _latest_end(pl.col("dry_ns") - pl.col("start_ns")))
    judged = during.with_columns(waited=waited, ns=pl.col("end_ns") - pl.col("start_ns"))
    kept = judged.filter(
        pl.col("waited"),
        pl.col("waited").sum().over("place") >= SILENCE_TIMES,
        _share_of_waits() >= SILENCE_SHARE,
    )
    return conform(kept, WAITS).sort("start_ns")


def _share_of_waits() -> pl.Expr:
    """How much of the silences at a place waited: of their number or of their time, whichever is more."""
    of_time = (pl.col("ns") * pl.col("waited")).sum() / pl.col("ns").sum()
    return pl.max_horizontal(pl.col("waited").mean().over("place"), of_time.over("place"))


def _latest_end(wait: pl.Expr) -> pl.Expr:
    """How long after the device a wait of this length may end: the longer it is, the later a thread is woken."""
    share = (wait * WAIT_ENDS_WITHIN_SHARE).cast(pl.Int64)
    return share.clip(WAIT_ENDS_WITHIN_NS, WAIT_ENDS_LATEST_NS)


def busy_times(trace: Trace) -> pl.DataFrame:
    """When any device of the trace worked; breaks shorter than a launch's latency do not count."""
    devices = trace.tracks.filter(pl.col("what") == "device")["id"]
    is_work = pl.col("kind").is_in(["kernel", "copy", "memset"]) & pl.col("track").is_in(devices.implode())
    work = trace.events.lazy().filter(is_work).select("start_ns", "dur_ns").collect().sort("start_ns")
    end = work["start_ns"] + work["dur_ns"] + LAUNCH_LATENCY_NS
    start, stop = union(buffer(work["start_ns"]), buffer(end))
    return pl.DataFrame(
        {
            "start_ns": series("start_ns", start, pl.Int64),
            "end_ns": series("end_ns", stop, pl.Int64) - LAUNCH_LATENCY_NS,
        }
    )


def _segments_before(pieces: pl.DataFrame, first: int) -> pl.Series:
    """For each piece the segment of the timeline before it, null where it is the first."""
    place = pl.col("place").cast(pl.Int64)
    before = pl.when(place > first).then(place - 1).cast(pl.UInt32)
    return pieces.select(before).to_series()


def _silences(trace: Trace, steps: Steps, main: int) -> pl.DataFrame:
    """Stretches of the main thread in a user's own frame, or in nothing at all, inside the steps."""
    causes = host_causes(trace)
    speaking = causes["acts"] | causes["waits"]
    low, high = take_smallest(steps.host["start_ns"]), take_largest(steps.host["end_ns"])
    span = pl.DataFrame(
        {"gap": [0], "start_ns": [low], "end_ns": [high], "track": [main]},
        schema={"gap": pl.UInt32, "start_ns": pl.Int64, "end_ns": pl.Int64, "track": pl.UInt32},
    )
    timeline = Timeline(trace, speaking)
    pieces = timeline.cut(span, longer_than=LEAST_WAIT_NS)
    pieces = pieces.filter(pieces["event"].is_null() | causes["own"].gather(pieces["event"]).fill_null(False))
    # In no frame, the thread waits for what the call before it started.
    before = _segments_before(pieces, int(timeline.first[main]))
    named = causes["named_by"].gather(
        pl.select(pl.coalesce(pieces["event"], timeline.owner.gather(before))).to_series()
    )
    return pieces.with_columns(
        named_by=named, place=trace.events["name"].gather(named).cast(pl.String).fill_null("")
    )
