"""What each event costs itself by one measure, of the steps that count or of a range of time: what flame graphs sum up.

Host time is self time, device time is charged to the op that launched the work, and allocated bytes to what allocated them: those of
devices, or those of the host where no device allocates. In a range events take the time that they have inside it; device time
counts where it ran there, whenever it was launched.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import polars as pl

from stepscope.analysis.context import RankContext, with_events
from stepscope.analysis.ops.calls import launched_work, op_calls
from stepscope.analysis.ops.flame import device_times, host_times
from stepscope.native import order
from stepscope.trace.columns import buffer, series
from stepscope.trace.schema import Text
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

MEASURES = ("host", "device", "memory")
OUTSIDE = "(outside of ops)"
Span = tuple[int, int]


@dataclass
class Costs:
    """Of one rank by one measure; `span` is a range of time, in place of steps."""

    context: RankContext
    measure: str
    span: Span | None = None

    @cached_property
    def trace(self) -> Trace:
        """The trace, in which an event has a step if it counts."""
        return self.context.trace if self.span is None else cut_trace(self.context.named_trace, self.span)

    @cached_property
    def calls(self) -> pl.DataFrame:
        """One row per call of an op, with `own`: what it costs by the measure."""
        found = self.context.op_calls if self.span is None else op_calls(self.trace)
        if self.measure != "memory":
            return found.with_columns(pl.col(f"{self.measure}_self_ns").alias("own"))
        return _with_bytes(self.trace, found, self.allocated)

    @cached_property
    def allocated(self) -> pl.Series:
        """By event, the bytes that it allocated."""
        return _allocated_bytes(self.trace, self.span)

    @cached_property
    def own(self) -> pl.Series:
        """By event, what it costs itself; nothing where it does not count."""
        if self.measure == "host":
            found = host_times(self.trace)
        elif self.measure == "device":
            calls = self.context.op_calls if self.span is None else self.calls
            found = device_times(self.trace, calls)
        else:
            found = self.allocated
        return pl.select(pl.when(counted(self.trace)).then(found).otherwise(0)).to_series()

    @cached_property
    def totals(self) -> pl.Series:
        """By event, what it costs with all events inside it."""
        up = self.trace.events["parent"].fill_null(order.NONE)
        return series("total", order.subtree_sums(buffer(up), buffer(self.own)), pl.Int64)


def counted(trace: Trace) -> pl.Series:
    """Which events are inside steps; all of them where there are no steps."""
    step = trace.events["step"]
    return step.is_not_null() if step.count() else trace.events["id"].is_not_null()


def cut_trace(trace: Trace, span: Span) -> Trace:
    """The trace, in which events take the time inside the range; step 0 is what happened there, or whose device work ran there."""
    events, (low, high) = trace.events, span
    start, end = pl.col("start_ns"), pl.col("start_ns") + pl.col("dur_ns")
    begin = start.clip(low, high)
    moved = events.with_columns(start_ns=begin, dur_ns=(end.clip(low, high) - begin).clip(0))
    is_inside = (start < high) & ((end > low) | (start >= low))
    inside = events.select(is_inside.alias("inside"))["inside"]
    work = launched_work(with_events(trace, moved)).filter(pl.col("ns") > 0)
    reached = inside.scatter(work["op"], True) if len(work) else inside
    step = pl.select(pl.when(reached).then(pl.lit(0, dtype=pl.Int32))).to_series()
    return with_events(trace, moved.with_columns(step=step))


def _allocated_bytes(trace: Trace, span: Span | None) -> pl.Series:
    rows = trace.memory.filter(pl.col("bytes") > 0, pl.col("event").is_not_null())
    on_devices = rows.filter(pl.col("device_kind") != "cpu")
    rows = on_devices if len(on_devices) else rows
    if span is not None:
        rows = rows.filter(pl.col("time_ns").is_between(*span, closed="left"))
    zeros = pl.zeros(len(trace.events), dtype=pl.Int64, eager=True)
    if rows.is_empty():
        return zeros
    by = _allocating(trace).gather(rows["event"])
    sums = rows.select("bytes", by=by).group_by("by").agg(pl.col("bytes").sum())
    return zeros.scatter(sums["by"], sums["bytes"])


def _allocating(trace: Trace) -> pl.Series:
    """By event, who allocates there: an allocation is not its own cause."""
    events = trace.events
    is_mark = pl.col("kind") == "memory"
    return events.select(pl.when(is_mark).then(pl.coalesce("parent", "id")).otherwise("id")).to_series()


def _with_bytes(trace: Trace, calls: pl.DataFrame, allocated: pl.Series) -> pl.DataFrame:
    """The calls with the bytes that each allocated; what was allocated outside of ops is a call of its own."""
    events = trace.events
    some = events.select("id", "step", "kind", bytes=allocated).filter(pl.col("bytes") > 0)
    is_op = events["kind"] == "op"
    around = ancestors(events, is_op).gather(some["id"])
    owner = pl.select(pl.when(some["kind"] == "op").then(some["id"]).otherwise(around)).to_series()
    known = pl.DataFrame({"event": owner, "own": some["bytes"]}).drop_nulls()
    sums = known.group_by("event").agg(pl.col("own").sum())
    joined = calls.join(sums, on="event", how="left", maintain_order="left")
    outside = some.filter(owner.is_null()).select(
        "step",
        event="id",
        name=pl.lit(OUTSIDE, dtype=Text),
        repeated=pl.lit(False),
        own="bytes",
    )
    return pl.concat([joined.with_columns(pl.col("own").fill_null(0)), outside], how="diagonal_relaxed")
