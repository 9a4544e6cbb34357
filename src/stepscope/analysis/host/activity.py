"""What a thread does between launches: dispatch, or work of its own.

A thread that launches does so every few microseconds. Where it goes on for long without an op or a call of the runtime, the
Python frames in between do not dispatch, in whichever package they are: they compute, and each accounts for its self time.
An op that runs for as long without a launch inside computes on the host, and so does a call of a function whose short ops add up to that.
"""

from __future__ import annotations

from array import array

import polars as pl

from stepscope.analysis.host.names import NO_COMPUTATION
from stepscope.analysis.host.tracks import by_track
from stepscope.native.host import intervals
from stepscope.native.host import lineage as codes
from stepscope.native.spans.nesting import self_times
from stepscope.registers.calibration.launches import LONG_HOST_NS
from stepscope.trace.columns import buffer, series
from stepscope.trace.frames import filled, kept_with_frame
from stepscope.trace.kept import kept_with_trace
from stepscope.trace.lookup import is_named, parents_of
from stepscope.trace.scopes import ancestors, at_or_inside, sums_below
from stepscope.trace.trace import Trace

_LAUNCHES = r"(?i)^(cuda|cu|hip)\w*(Launch|Memcpy|Memset)"
FRAMES = (codes.FRAMEWORK, codes.LIBRARY, codes.USER, codes.CONTEXT, codes.FRAMEWORK_CONTEXT)
_IS_FRAME = pl.Series([code in FRAMES for code in range(codes.ALLOCATOR + 1)]).cast(pl.UInt8)


def computing_frames(trace: Trace, code: pl.Series) -> pl.Series:
    """Python frames that spend most of their self time in long intervals without op or call; `code` is what each event stands for."""
    events = trace.events
    nothing = pl.repeat(False, len(events), dtype=pl.Boolean, eager=True)
    if not (events["kind"] == "python").any():
        return nothing
    on_host = by_track(trace, pl.col("what") == "host").gather(events["track"]).fill_null(False)
    table = events.select("id", "track", "start_ns", "dur_ns", code=code)
    table = table.filter(on_host & (pl.col("dur_ns") > 0) & (pl.col("code") != codes.SILENT))
    found = intervals.computing(
        buffer(table["track"]), buffer(table["start_ns"]), buffer(table["dur_ns"]),
        buffer(_IS_FRAME.gather(table["code"])), LONG_HOST_NS,
    )  # fmt: skip
    return nothing.scatter(table["id"].filter(series("computing", found, pl.UInt8) == 1), True)


def computing_ops(trace: Trace, code: pl.Series) -> pl.Series:
    """For each event the op around it, or itself, that runs for long by itself and launches nothing, else null.

    Its own time counts: a thousand views in a row compute nothing. None where the trace shows no launches.
    """
    events = trace.events
    launches = _launches(trace)
    nothing = pl.repeat(None, len(events), dtype=pl.UInt32, eager=True)
    if not launches.any():
        return nothing
    below = sums_below(events, launches)
    root = (code == codes.OP) & (events["kind"] == "op") & (below == 0) & (self_time(events) >= LONG_HOST_NS)
    root &= ~is_named(events, NO_COMPUTATION)
    if not root.any():
        return nothing
    return pl.select(pl.when(root).then(events["id"]).otherwise(ancestors(events, root))).to_series()


def computing_calls(trace: Trace, code: pl.Series) -> pl.Series:
    """Whether each event is inside a call of the user's, or is one, that launches nothing and has ops which compute for long, taken together.

    Views compute nothing, however many there are. An optimizer counts its steps on the host, and dispatches all the same.
    """
    events = trace.events
    launches = _launches(trace)
    nothing = pl.repeat(False, len(events), dtype=pl.Boolean, eager=True)
    mine = (code == codes.USER) & (events["kind"] == "python") & (events["dur_ns"] >= LONG_HOST_NS)
    if not launches.any() or not mine.any():
        return nothing
    computes = (code == codes.OP) & (events["kind"] == "op") & ~is_named(events, NO_COMPUTATION)
    own = pl.select(pl.when(computes).then(self_time(events)).otherwise(0)).to_series()
    computed = sums_below(events, own)
    updates = filled(events["role"] == "optimizer")
    below = sums_below(events, launches | updates)
    root = mine & (below == 0) & (computed >= LONG_HOST_NS)
    if updates.any():
        root &= ancestors(events, updates).is_null()
    return at_or_inside(events, root) if root.any() else nothing


@kept_with_frame
def self_time(events: pl.DataFrame) -> pl.Series:
    """The duration of each event without those inside it."""
    own = array("q", bytes(8 * len(events)))
    self_times(parents_of(events), buffer(events["dur_ns"]), own)
    return series("self_ns", own, pl.Int64)


@kept_with_trace
def _launches(trace: Trace) -> pl.Series:
    """Calls that gave work to a device, also where the work itself was not recorded."""
    events = trace.events
    linked = trace.links.filter(pl.col("why") == "launch")["from"].unique()
    named = is_named(events, _LAUNCHES) & (events["kind"] == "runtime")
    return named.scatter(linked, True)
