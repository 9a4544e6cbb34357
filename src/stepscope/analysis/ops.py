"""What each op cost: calls, host and device time of its own and in total, memory, FLOPs.

Host self time is an op's duration without the events directly inside it. Device self time is the work that the op
itself launched, device total time also that of the ops inside it. Only calls inside steps count, if there are steps.
"""

from __future__ import annotations

from array import array

import polars as pl

from stepscope.analysis.flops import work_of_ops
from stepscope.native import intervals, order
from stepscope.trace.columns import buffer, series
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

NONE = order.NONE
_COUNTS = (
    "calls",
    "host_total_ns",
    "host_self_ns",
    "device_total_ns",
    "device_self_ns",
    "memory_bytes",
    "flops",
    "bytes",
)


def op_calls(trace: Trace) -> pl.DataFrame:
    """One row per call of an op: event, name, step, scope, shapes, dtypes, placement, execution and its costs."""
    events = trace.events
    ops = trace.ops if len(trace.ops) else _bare_ops(events)
    device_self = device_time_by_op(trace)
    device_total = _subtree_sums(events, device_self)
    self_ns = _self_times(events)
    memory = _memory_by_op(trace)
    event = ops["event"]
    rows = ops.select("event", "scope", "shapes", "dtypes", "concrete_inputs", "placement").with_columns(
        name=events["name"].gather(event),
        step=events["step"].gather(event),
        track=events["track"].gather(event),
        host_total_ns=events["dur_ns"].gather(event),
        host_self_ns=self_ns.gather(event),
        device_self_ns=device_self.gather(event),
        device_total_ns=device_total.gather(event),
        memory_bytes=None if memory is None else memory.gather(event),
        outermost=~_inside_same_name(events, event),
    )
    return rows.with_columns(work_of_ops(rows))


def ops_table(calls: pl.DataFrame, by: tuple[str, ...] = ("name",)) -> pl.DataFrame:
    """The calls inside steps, summed by name and whatever else is asked for (scope, shapes, placement)."""
    inside = calls.filter(pl.col("step").is_not_null()) if calls["step"].count() else calls
    # A recursive op's time is already in its outermost call.
    outer = pl.col("outermost")
    grouped = inside.group_by(by, maintain_order=True).agg(
        pl.len().alias("calls"),
        pl.col("host_total_ns").filter(outer).sum(),
        pl.col("host_self_ns").sum(),
        pl.col("device_total_ns").filter(outer).sum(),
        pl.col("device_self_ns").sum(),
        *(_sum_or_null(name) for name in ("memory_bytes", "flops", "bytes")),
        *(_only_value(name) for name in ("scope", "shapes", "placement") if name not in by),
    )
    return grouped.sort(["device_self_ns", "host_self_ns"], descending=True, maintain_order=True)


def device_time_by_op(trace: Trace) -> pl.Series:
    """Device time launched by each event that is an op, 0 for all other events."""
    events = trace.events
    launches = trace.links.filter(pl.col("why") == "launch")
    is_op = events["kind"] == "op"
    caller = pl.select(pl.when(is_op).then(events["id"]).otherwise(ancestors(events, is_op))).to_series()
    by_launch = (
        launches.select(event="to", op=caller.gather(launches["from"]))
        .drop_nulls()
        .unique("event", keep="first")
    )
    named = trace.kernels.select("event", "op").drop_nulls()
    owners = pl.concat([by_launch, named.join(by_launch, on="event", how="anti")])
    work = owners.with_columns(
        kind=events["kind"].gather(owners["event"]), ns=events["dur_ns"].gather(owners["event"])
    ).filter(pl.col("kind").is_in(["kernel", "copy", "memset"]))
    return _scattered(len(events), work.group_by("op").agg(pl.col("ns").sum()))


def _bare_ops(events: pl.DataFrame) -> pl.DataFrame:
    return pl.DataFrame({"event": events.filter(pl.col("kind") == "op")["id"]}).with_columns(
        pl.lit(None, dtype=pl.String).alias(name)
        for name in ("scope", "shapes", "dtypes", "concrete_inputs", "placement")
    )


def _scattered(count: int, sums: pl.DataFrame) -> pl.Series:
    zero = pl.zeros(count, dtype=pl.Int64, eager=True)
    return zero.scatter(sums["op"], sums["ns"]) if len(sums) else zero


def _subtree_sums(events: pl.DataFrame, values: pl.Series) -> pl.Series:
    sums = order.subtree_sums(buffer(events["parent"].fill_null(NONE)), buffer(values))
    return series("total", sums, pl.Int64)


def _self_times(events: pl.DataFrame) -> pl.Series:
    out = array("q", bytes(8 * len(events)))
    intervals.self_times(buffer(events["parent"].fill_null(NONE)), buffer(events["dur_ns"]), out)
    return series("self", out, pl.Int64)


def _memory_by_op(trace: Trace) -> pl.Series | None:
    """Bytes that each op allocated itself, where allocations were recorded."""
    allocated = trace.memory.filter(pl.col("bytes") > 0, pl.col("event").is_not_null())
    if allocated.is_empty():
        return None
    events = trace.events
    is_op = events["kind"] == "op"
    caller = pl.select(pl.when(is_op).then(events["id"]).otherwise(ancestors(events, is_op))).to_series()
    sums = (
        allocated.select(op=caller.gather(allocated["event"]), ns="bytes")
        .drop_nulls()
        .group_by("op")
        .agg(pl.col("ns").sum())
    )
    return _scattered(len(events), sums)


def _inside_same_name(events: pl.DataFrame, event: pl.Series) -> pl.Series:
    """Whether the op runs directly inside an op of the same name, as overloads that call each other do."""
    above = ancestors(events, events["kind"] == "op").gather(event)
    return (events["name"].gather(above) == events["name"].gather(event)).fill_null(False)


def _sum_or_null(name: str) -> pl.Expr:
    return pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(name)


def _only_value(name: str) -> pl.Expr:
    """The value that all calls share, or null."""
    return pl.when(pl.col(name).n_unique() == 1).then(pl.col(name).first()).alias(name)
