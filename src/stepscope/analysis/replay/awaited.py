"""What a wait waits for: all that was launched, or only what was done when it ended.

A job that reads the result of the step before, while the device computes the next one, waits for a part of the queue; so
does one that waits for an event, or for one stream of several. The device goes on working behind such a wait.
"""

from __future__ import annotations

import polars as pl

from stepscope.native.host import replay as native
from stepscope.registers.calibration.launches import STILL_WORKING_NS
from stepscope.trace.trace import Trace

_NOTHING = (1 << 32) - 1  # items back: before the first one


def awaited(trace: Trace, points: pl.DataFrame) -> pl.Series:
    """For each item of a plan, in order, how many items back that is whose work it waits for; 0 if it waits for all."""
    works = points.filter(pl.col("device_ns") > 0, pl.col("event").is_not_null())
    starts = trace.events["start_ns"].gather(works["event"])
    done = works.select("item", done=starts + works["device_ns"])
    waits = points.filter(pl.col("kind") == native.WAIT).select("item", "at")
    if done.is_empty() or waits.is_empty():
        return _none(points)
    latest = done.with_columns(latest=pl.col("done").cum_max()).select("item", "latest")
    waits = waits.join_asof(latest, on="item")
    partly = waits.filter(pl.col("latest") > pl.col("at") + STILL_WORKING_NS).sort("at")
    ended = done.sort("done", "item").select(at="done", target="item")
    found = partly.join_asof(ended, on="at")
    is_before = pl.col("target") < pl.col("item")
    back = pl.when(is_before).then(pl.col("item") - pl.col("target")).otherwise(_NOTHING)
    found = found.with_columns(back=back.cast(pl.UInt32))
    return _none(points).scatter(found["item"], found["back"])


def _none(points: pl.DataFrame) -> pl.Series:
    return pl.repeat(0, len(points), dtype=pl.UInt32, eager=True)
