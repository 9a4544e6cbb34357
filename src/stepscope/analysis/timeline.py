"""What each host thread was doing at each moment."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.steps import Steps
from stepscope.native import segments as native
from stepscope.trace.columns import buffer, series
from stepscope.trace.trace import Trace

NONE = native.NONE


def main_track(trace: Trace, steps: Steps) -> int:
    """The thread that marks the steps; without steps the busiest one."""
    if len(steps.host):
        return int(steps.host["track"][0])
    host = trace.tracks.filter(pl.col("what") == "host")["id"]
    busy = trace.events.filter(pl.col("track").is_in(host.implode()), pl.col("depth") == 0)
    return (
        int(busy.group_by("track").agg(pl.col("dur_ns").sum()).sort("dur_ns")["track"][-1])
        if len(busy)
        else 0
    )


class Timeline:
    """What each host thread was doing at each moment."""

    def __init__(self, trace: Trace) -> None:
        host = trace.tracks.filter(pl.col("what") == "host")["id"]
        events = trace.events.filter(pl.col("track").is_in(host.implode()), pl.col("dur_ns") > 0)
        start, end, row = native.segments(
            buffer(events["track"]), buffer(events["start_ns"]), buffer(events["dur_ns"])
        )
        self.start = series("start_ns", start, pl.Int64)
        self.end = series("end_ns", end, pl.Int64)
        rows = series("row", row, pl.UInt32)
        self.owner = events["id"].gather(rows)
        track = events["track"].gather(rows)
        self.count = int(trace.tracks["id"].max() or 0) + 1  # type: ignore[arg-type]
        self.first = track.search_sorted(
            pl.int_range(self.count + 1, dtype=pl.UInt32, eager=True), side="left"
        ).cast(pl.UInt32)

    def cut(self, spans: pl.DataFrame) -> pl.DataFrame:
        """The spans (gap, start_ns, end_ns, track) cut by what their threads did; `event` is null for nothing."""
        span, start, end, row = native.cut(
            buffer(spans["track"]), buffer(spans["start_ns"]), buffer(spans["end_ns"]),
            buffer(self.first), buffer(self.start), buffer(self.end), buffer(self.owner),
        )  # fmt: skip
        index = series("span", span, pl.UInt32)
        event = series("event", row, pl.UInt32)
        return pl.DataFrame(
            {
                "gap": spans["gap"].gather(index),
                "track": spans["track"].gather(index),
                "start_ns": series("start_ns", start, pl.Int64),
                "end_ns": series("end_ns", end, pl.Int64),
                "event": pl.select(pl.when(event != NONE).then(event)).to_series(),
            }
        )

    def cut_or_main(self, spans: pl.DataFrame, main: int) -> pl.DataFrame:
        """The same; but while a thread did nothing, it waited for the main one: look there."""
        pieces = self.cut(spans)
        silent = pieces.filter(pl.col("event").is_null(), pl.col("track") != main)
        if silent.is_empty():
            return pieces
        known = pieces.filter(pl.col("event").is_not_null() | (pl.col("track") == main))
        return pl.concat([known, self.cut(silent.with_columns(track=pl.lit(main, dtype=pl.UInt32)))])
