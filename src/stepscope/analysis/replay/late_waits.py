"""What a wait takes after the device has run dry: a runtime copies the result on its own threads and wakes the one that waits.

CUDA's own calls return within microseconds. Under JAX and TensorFlow a value that is read goes through several threads, which
takes a few hundred microseconds each time, whether the device had anything to do or not: the host's time, and it goes with the wait.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.account.unrecorded_waits import busy_times, unrecorded_waits
from stepscope.analysis.host.causes import is_wait
from stepscope.analysis.part_column import Part
from stepscope.analysis.steps.find import Steps
from stepscope.native.host import replay as native
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace


def with_late_waits(trace: Trace, steps: Steps, points: pl.DataFrame, host: pl.DataFrame) -> pl.DataFrame:
    """The host's work before each item, and with it what waits take beyond the device's work."""
    if trace.info.framework == "pytorch":
        return host
    waits = _outermost(trace, steps, points)
    busy = busy_times(trace)
    if waits.is_empty() or busy.is_empty():
        return host
    idle = waits["end_ns"] - waits["start_ns"] - _busy_between(busy, waits) - _counted(trace, host, waits)
    late = waits.with_columns(recorded_ns=idle).filter(pl.col("recorded_ns") > 0)
    rows = late.select(
        "event", "item", cause=pl.lit("sync", dtype=Part), named_by="event", recorded_ns="recorded_ns"
    )
    return pl.concat([host, rows.select(host.columns).cast(host.schema)]).sort("item", maintain_order=True)


def _outermost(trace: Trace, steps: Steps, points: pl.DataFrame) -> pl.DataFrame:
    """item, event, start_ns, end_ns of the waits of the plan that are in no other, in the order of their start."""
    waiting = is_wait(trace)
    inner = ancestors(trace.events, waiting).is_not_null()
    items = points.filter(pl.col("kind") == native.WAIT, pl.col("event").is_not_null())
    recorded = items.filter((waiting & ~inner).gather(items["event"]))
    starts = trace.events["start_ns"].gather(recorded["event"])
    named = recorded.select("item", "event", start_ns=starts, end_ns="at")
    silent = unrecorded_waits(trace, steps).select("start_ns", event="named_by", at="end_ns")
    quiet = items.select("item", "event", "at").join(silent, on=["event", "at"], how="inner")
    both = pl.concat([named, quiet.select("item", "event", "start_ns", end_ns="at")])
    apart = both.sort("start_ns", "end_ns").unique("item", keep="first", maintain_order=True)
    return apart.filter(pl.col("start_ns") >= pl.col("end_ns").cum_max().shift(1).fill_null(0))


def _busy_between(busy: pl.DataFrame, waits: pl.DataFrame) -> pl.Series:
    """How long the device worked between the start and the end of each wait."""
    found: pl.Series = _busy_until(busy, waits["end_ns"]) - _busy_until(busy, waits["start_ns"])
    return found


def _busy_until(busy: pl.DataFrame, moments: pl.Series) -> pl.Series:
    sums = (busy["end_ns"] - busy["start_ns"]).cum_sum()
    before = pl.concat([pl.Series([0], dtype=pl.Int64), sums])
    place = busy["start_ns"].search_sorted(moments, side="right").cast(pl.Int64)
    begun = (place - 1).clip(lower_bound=0)
    spent = before.gather(begun) + (
        pl.select(pl.min_horizontal(moments, busy["end_ns"].gather(begun))).to_series()
        - busy["start_ns"].gather(begun)
    )
    return pl.select(pl.when(place > 0).then(spent).otherwise(0)).to_series()


def _counted(trace: Trace, host: pl.DataFrame, waits: pl.DataFrame) -> pl.Series:
    """What other threads did during each wait and the plan has already, as the host's work before their launches."""
    begin = trace.events["start_ns"].gather(host["event"])
    rows = host.select("recorded_ns", begin=begin).drop_nulls("begin").sort("begin")
    sums = pl.concat([pl.Series([0], dtype=pl.Int64), rows["recorded_ns"].cum_sum()])
    ends, starts = (rows["begin"].search_sorted(waits[name], side="left") for name in ("end_ns", "start_ns"))
    found: pl.Series = sums.gather(ends) - sums.gather(starts)
    return found
