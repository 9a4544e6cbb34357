"""Launches of graphs as calls beside those of ops, and the calls of ops that a capture names inside them."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.ops.flops import work_of_ops
from stepscope.registers.policy.tables import GRAPH_KERNELS
from stepscope.trace.graphs import graph_work
from stepscope.trace.schema import Columns, Text
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

REPLAY = "graph replay"  # the execution of a row that is a launch of a graph


def launch_names(trace: Trace, work: pl.DataFrame) -> pl.DataFrame:
    """launch, name: the call and how many pieces of work it starts; graphs of one size with other work are numbered."""
    names = trace.events["name"]
    inside = names.gather(work["event"]).to_physical()
    graphs = (
        work.with_columns(inside=inside)
        .group_by("launch", maintain_order=True)
        .agg(pl.len().alias("count"), content=pl.col("inside").hash(seed=0).implode().hash())
    )
    call = names.gather(graphs["launch"]).cast(pl.String)
    number = pl.col("content").rank("dense").over("call", "count")
    several = pl.col("content").n_unique().over("call", "count") > 1
    plain = pl.format("{} ({} nodes)", "call", "count")
    return graphs.with_columns(call=call).select(
        "launch",
        name=pl.when(several)
        .then(pl.format("{} ({} nodes, graph {})", "call", "count", number))
        .otherwise(plain),
    )


def with_graph_launches(trace: Trace, rows: pl.DataFrame) -> pl.DataFrame:
    """The calls of ops, and a row for each launch of a graph."""
    work = graph_work(trace)
    if work.is_empty():
        return rows
    events = trace.events
    time = events["dur_ns"].gather(work["event"])
    named = work["event"].is_in(trace.ops["event"].implode())
    sums = (
        work.select("launch", time=time, named=named)
        .group_by("launch", maintain_order=True)
        .agg(
            device_total_ns=pl.col("time").sum(), device_self_ns=pl.col("time").filter(~pl.col("named")).sum()
        )
    )
    sums = sums.join(launch_names(trace, work), on="launch", maintain_order="left")
    launch = sums["launch"]
    first = work.unique("launch", keep="first", maintain_order=True)["event"]
    device = trace.tracks.sort("id")["device"].gather(events["track"].gather(first))
    kind = trace.tracks.sort("id")["device_kind"].gather(events["track"].gather(first)).cast(pl.String)
    around = ancestors(events, events["kind"] == "annotation").gather(launch)
    calls = sums.select(
        "device_total_ns",
        "device_self_ns",
        event="launch",
        name=pl.col("name").cast(Text),
        scope=events["name"].gather(around),
        step=events["step"].gather(launch),
        track=events["track"].gather(launch),
        execution=pl.lit(REPLAY),
        placement=pl.format("{}:{}", kind, device).cast(Text),
        host_total_ns=events["dur_ns"].gather(launch),
        host_self_ns=events["dur_ns"].gather(launch),
        outermost=pl.lit(True),
        repeated=pl.lit(False),
    )
    return pl.concat([rows, calls], how="diagonal_relaxed").select(rows.columns)


def captured_calls(trace: Trace, rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of device work, of which those with an `external_id` are nodes that a capture names.

    An op that launched several nodes is one call: its longest node counts, and carries its FLOPs.
    """
    if rows["external_id"].null_count() == len(rows):
        return rows
    launch = graph_work(trace).select("event", "launch")
    known = rows.join(launch, on="event", how="left", maintain_order="left")
    is_captured = pl.col("external_id").is_not_null() & pl.col("launch").is_not_null()
    longest = pl.col("device_self_ns").rank("ordinal", descending=True).over("launch", "external_id") == 1
    known = known.with_columns(
        repeated=is_captured & ~longest, known=is_captured & longest, concrete_inputs=pl.lit(None, dtype=Text)
    )
    work = known.select(work_of_ops(known)).rename({"flops": "flops_known", "bytes": "bytes_known"})
    return (
        pl.concat([known, work], how="horizontal")
        .with_columns(
            flops=pl.when("known").then("flops_known").otherwise("flops"),
            bytes=pl.when("known").then("bytes_known").otherwise("bytes"),
        )
        .drop("launch", "known", "flops_known", "bytes_known", "concrete_inputs")
    )


GRAPHS: Columns = {
    "name": pl.String,
    "scope": pl.String,
    "calls": pl.Int64,
    "nodes": pl.Int64,
    "host_ns": pl.Int64,
    "device_ns": pl.Int64,
    "named_ns": pl.Int64,
    "kernels": pl.List(pl.Struct({"name": pl.String, "calls": pl.Int64, "ns": pl.Int64})),
}


def graphs_table(trace: Trace, calls: pl.DataFrame) -> pl.DataFrame:
    """The graphs that were launched inside the steps, the longest on the device first, with the longest kernels of each."""
    launches = calls.filter(pl.col("execution") == REPLAY)
    if launches["step"].count():
        launches = launches.filter(pl.col("step").is_not_null())
    if launches.is_empty():
        return pl.DataFrame(schema=GRAPHS)
    names = launches.select(pl.col("name").cast(pl.String), launch="event")
    work = graph_work(trace).join(names, on="launch")
    kernels = work.select(
        graph="name",
        name=trace.events["name"].gather(work["event"]).cast(pl.String),
        ns=trace.events["dur_ns"].gather(work["event"]),
    )
    inside = kernels.group_by("graph", "name").agg(calls=pl.len().cast(pl.Int64), ns=pl.col("ns").sum())
    inside = inside.sort(["ns", "name"], descending=[True, False])
    shown = inside.group_by("graph", maintain_order=True).head(GRAPH_KERNELS)
    longest = shown.group_by("graph").agg(kernels=pl.struct("name", "calls", "ns"))
    rows = launches.group_by(pl.col("name").cast(pl.String), maintain_order=True).agg(
        scope=pl.col("scope").cast(pl.String).first(),
        calls=pl.len().cast(pl.Int64),
        host_ns=pl.col("host_total_ns").sum(),
        device_ns=pl.col("device_total_ns").sum(),
        named_ns=(pl.col("device_total_ns") - pl.col("device_self_ns")).sum(),
    )
    nodes = kernels.group_by("graph").agg(nodes=pl.len().cast(pl.Int64))
    joined = rows.join(longest, left_on="name", right_on="graph").join(
        nodes, left_on="name", right_on="graph"
    )
    each = joined.with_columns(nodes=pl.col("nodes") // pl.col("calls"))
    return each.select(list(GRAPHS)).sort(["device_ns", "name"], descending=[True, False])
