"""What each op cost: calls, host and device time of its own and in total, memory, FLOPs.

Host self time is an op's duration without the ops, annotations, Python and runtime calls inside it; unnamed work of
the framework inside an op (such as TensorFlow's ParallelFor) is its own. Device self time is the work that the op
itself launched, device total time also that of the ops inside it. An op of a compiled program has the device time of
its own kernels. A launch of a graph is a row like an op: its total is all its work, its self time what no capture names.
An op of the backward pass has the module of the forward op it is linked to. A call that does nothing but
call the same op again is one call. Only calls inside steps count, if there are steps. An op ran eagerly, as Python
asked for it, or as a part of a graph that was built before.
"""

from __future__ import annotations

from array import array

import polars as pl

from stepscope.analysis.ops.flops import work_of_ops
from stepscope.analysis.ops.forward_backward import forward_ops, scopes_of
from stepscope.analysis.ops.graph_calls import captured_calls, with_graph_launches
from stepscope.analysis.xla.ops import program_ops
from stepscope.native import order
from stepscope.native.spans import nesting
from stepscope.trace.columns import buffer, series
from stepscope.trace.graphs import graph_work
from stepscope.trace.lookup import names_of, rows_by_event
from stepscope.trace.schema import Text
from stepscope.trace.scopes import ancestors, sums_below
from stepscope.trace.trace import Trace

NONE = order.NONE
_DEVICE_WORK = ("kernel", "copy", "memset")
# What PyTorch's own tables take for calls, which is what makes a call the only one inside another.
_CALLS = ("op", "annotation", "runtime", "sync")
_TEXTS = ("scope", "shapes", "dtypes", "concrete_inputs", "placement")
# What runs the ops below it: TensorFlow's executor of graphs, its eager executor, and torch.compile's programs.
_GRAPH = r"^ExecutorState::|^Torch-Compiled Region|CompiledFxGraph|^CompiledFunction"
_EAGER = r"^Eager(Kernel|Local)?Execute"


def op_calls(trace: Trace) -> pl.DataFrame:
    """One row per call of an op: event, name, step, scope, shapes, dtypes, placement, execution and its costs."""
    events = trace.events
    work = launched_work(trace)
    hosts = _host_calls(trace, work)
    rows = with_graph_launches(trace, hosts.with_columns(work_of_ops(hosts)))
    programs = program_ops(trace)
    of_programs = _program_calls(trace, programs, work["event"])
    if of_programs is None:
        return _named_by_program(rows, programs)
    on_device = events["kind"].gather(rows["event"]).is_in(_DEVICE_WORK)
    return pl.concat([_named_by_program(rows.filter(~on_device), programs), of_programs], how="diagonal")


def _host_calls(trace: Trace, work: pl.DataFrame) -> pl.DataFrame:
    events = trace.events
    # Allocations, too, name the op that they belong to.
    ops = trace.ops.filter(events["kind"].gather(trace.ops["event"]) != "memory")
    ops = ops if len(ops) else _bare_ops(events)
    device_self = _scattered(len(events), work.group_by("op").agg(pl.col("ns").sum()))
    device_total = sums_below(events, device_self)
    memory = _memory_by_op(trace)
    event = ops["event"]
    outermost, repeated = _nested_calls(events, event)
    forward = forward_ops(trace)
    return ops.select("event", *_TEXTS).with_columns(
        scope=scopes_of(trace, event, forward) if forward is not None else ops["scope"],
        forward=None if forward is None else events["name"].gather(forward.gather(event)),
        name=events["name"].gather(event),
        step=events["step"].gather(event),
        track=events["track"].gather(event),
        execution=execution(trace, event),
        placement=_placement(trace, ops, work),
        host_total_ns=events["dur_ns"].gather(event),
        host_self_ns=_self_times(events).gather(event),
        device_self_ns=device_self.gather(event),
        device_total_ns=device_total.gather(event),
        memory_bytes=None if memory is None else memory.gather(event),
        outermost=outermost,
        repeated=repeated,
    )


def _program_calls(trace: Trace, programs: pl.DataFrame, launched: pl.Series) -> pl.DataFrame | None:
    """Device work that no op launched but whose op is known: a compiled program's. None where there is none."""
    events = trace.events
    on_device = trace.ops.filter(events["kind"].gather(trace.ops["event"]).is_in(_DEVICE_WORK))
    if on_device.is_empty():
        return None
    rows = on_device.select("event", "scope", "dtypes", "external_id", own="shapes")
    rows = rows.filter(~pl.col("event").is_in(launched.implode()))
    rows = rows.join(programs.rename({"scope": "told_scope"}), on="event", how="left", maintain_order="left")
    path = pl.col("scope").cast(pl.String)
    last = path.str.split("/").list.last()
    event = rows["event"]
    track = events["track"].gather(event)
    time = events["dur_ns"].gather(event)
    called = rows.select(
        "event",
        "external_id",
        "dtypes",
        name=pl.coalesce("op", last, events["name"].gather(event).cast(pl.String)).cast(Text),
        scope=pl.coalesce("told_scope", path.str.strip_suffix("/" + last)).cast(Text),
        step=events["step"].gather(event),
        track=track,
        execution=pl.lit("graph"),
        placement=_device_names(trace).gather(track).cast(Text),
        host_total_ns=pl.lit(0, dtype=pl.Int64),
        host_self_ns=pl.lit(0, dtype=pl.Int64),
        device_self_ns=time,
        device_total_ns=time,
        flops="flops",
        bytes="bytes",
        shapes=pl.coalesce(pl.col("shapes").cast(Text), "own"),
        outermost=pl.lit(True),
        repeated=pl.lit(False),
    )
    return captured_calls(trace, called).drop("external_id")


def _named_by_program(rows: pl.DataFrame, programs: pl.DataFrame) -> pl.DataFrame:
    """Ops of programs that run on the host have an instruction's name; the program says which op that is."""
    if programs.is_empty():
        return rows
    told = programs.rename({name: f"told_{name}" for name in ("scope", "flops", "bytes", "shapes")})
    joined = rows.join(told, on="event", how="left", maintain_order="left")
    return joined.with_columns(
        name=pl.coalesce(pl.col("op").cast(Text), "name"),
        scope=pl.coalesce(pl.col("told_scope").cast(Text), "scope"),
        shapes=pl.coalesce("shapes", pl.col("told_shapes").cast(Text)),
        flops=pl.coalesce("flops", "told_flops"),
        bytes=pl.coalesce("bytes", "told_bytes"),
        execution=pl.when(pl.col("op").is_not_null()).then(pl.lit("graph")).otherwise("execution"),
    ).select(rows.columns)


def ops_table(calls: pl.DataFrame, by: tuple[str, ...] = ("name",)) -> pl.DataFrame:
    """The calls inside steps, summed by name and whatever else is asked for (scope, shapes, placement)."""
    inside = calls.filter(pl.col("step").is_not_null()) if calls["step"].count() else calls
    # A recursive op's time is already in its outermost call.
    outer = pl.col("outermost")
    grouped = inside.group_by(by, maintain_order=True).agg(
        (~pl.col("repeated")).sum().cast(pl.Int64).alias("calls"),
        pl.col("host_total_ns").filter(outer).sum(),
        pl.col("host_self_ns").sum(),
        pl.col("device_total_ns").filter(outer).sum(),
        pl.col("device_self_ns").sum(),
        *(_sum_or_null(name) for name in ("memory_bytes", "flops", "bytes")),
        *(
            _only_value(name)
            for name in ("scope", "shapes", "placement", "execution", "forward")
            if name not in by
        ),
    )
    return grouped.sort(["device_self_ns", "host_self_ns"], descending=True, maintain_order=True)


def launched_work(trace: Trace) -> pl.DataFrame:
    """event, op, ns, track of the device work that ops launched."""
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
    in_graphs = graph_work(trace)
    if len(in_graphs):
        # The launch owns its work, but for what the capture or the program names.
        unnamed = in_graphs.filter(~pl.col("event").is_in(trace.ops["event"].implode()))
        owners = owners.filter(~pl.col("event").is_in(in_graphs["event"].implode()))
        owners = pl.concat([owners, unnamed.select("event", op="launch")])
    return owners.with_columns(
        events["dur_ns"].gather(owners["event"]).alias("ns"),
        *(events[name].gather(owners["event"]) for name in ("kind", "track")),
    ).filter(pl.col("kind").is_in(_DEVICE_WORK))


def _device_names(trace: Trace) -> pl.Series:
    """By track: `gpu:0`, or null for a thread."""
    tracks = trace.tracks.sort("id")
    name = pl.format("{}:{}", pl.col("device_kind").cast(pl.String), "device")
    return tracks.select(pl.when(pl.col("what") == "device").then(name)).to_series()


def _placement(trace: Trace, ops: pl.DataFrame, work: pl.DataFrame) -> pl.Series:
    """As recorded; else the device that ran what the op launched; `cpu` where there is no device at all."""
    count = len(trace.events)
    where = _device_names(trace)
    if work.is_empty():
        rest = pl.lit("cpu" if not where.count() else None, dtype=pl.String)
        return ops.select(pl.coalesce(pl.col("placement").cast(pl.String), rest).cast(Text)).to_series()
    first = rows_by_event(work["op"], count).gather(ops["event"])
    ran = where.cast(Text).gather(work["track"].gather(first))
    return ops.select(pl.coalesce("placement", ran)).to_series()


def _bare_ops(events: pl.DataFrame) -> pl.DataFrame:
    return pl.DataFrame({"event": events.filter(pl.col("kind") == "op")["id"]}).with_columns(
        pl.lit(None, dtype=Text).alias(name) for name in _TEXTS
    )


def _scattered(count: int, sums: pl.DataFrame) -> pl.Series:
    zero = pl.zeros(count, dtype=pl.Int64, eager=True)
    return zero.scatter(sums["op"], sums["ns"]) if len(sums) else zero


def _self_times(events: pl.DataFrame) -> pl.Series:
    out = array("q", bytes(8 * len(events)))
    nesting.self_times(buffer(_callers(events).fill_null(NONE)), buffer(events["dur_ns"]), out)
    return series("self", out, pl.Int64)


def _callers(events: pl.DataFrame) -> pl.Series:
    """The parent of each event; spans inside ops are looked through, and take no time from the op."""
    spans = events.filter(pl.col("kind") == "span")
    if not (events["kind"].gather(spans["parent"]) == "op").any():
        return events["parent"]
    counts = events["kind"] != "span"
    return pl.select(pl.when(counts).then(ancestors(events, counts))).to_series()


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


def _nested_calls(events: pl.DataFrame, event: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Whether each op is not inside an op of the same name; and whether it is all that such an op does."""
    above = ancestors(events, events["kind"] == "op").gather(event)
    inside = (events["name"].gather(above) == events["name"].gather(event)).fill_null(False)
    if not inside.any():
        return ~inside, inside
    is_call = events["kind"].is_in(_CALLS)
    caller = ancestors(events, is_call).filter(is_call)
    alone = pl.DataFrame({"op": caller}).filter(pl.col("op").is_in(above.filter(inside).implode()))
    only = alone.group_by("op").len().filter(pl.col("len") == 1)["op"]
    return ~inside, inside & above.is_in(only.implode())


def _sum_or_null(name: str) -> pl.Expr:
    return pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(name)


def _only_value(name: str) -> pl.Expr:
    """The value that all calls share, or null."""
    code = pl.col(name).to_physical()  # compared as numbers: counting different ones takes much longer
    same = (code.min() == code.max()) & (pl.col(name).null_count() == 0)
    return pl.when(same).then(pl.col(name).first()).alias(name)


def execution(trace: Trace, event: pl.Series) -> pl.Series:
    """`eager`, `graph` or null for each of these ops."""
    events = trace.events
    names = names_of(events)
    text = names.cast(pl.String)
    graph, eager = names.filter(text.str.contains(_GRAPH)), names.filter(text.str.contains(_EAGER))
    rest = "eager" if trace.info.framework == "pytorch" else None
    if graph.is_empty() and eager.is_empty():
        return pl.repeat(rest, len(event), dtype=pl.String, eager=True)
    runs_ops = events["name"].is_in(pl.concat([graph, eager]).implode()).fill_null(False)
    runner = events["name"].gather(ancestors(events, runs_ops).gather(event))
    found = pl.DataFrame({"runner": runner}).select(
        pl.when(pl.col("runner").is_in(graph.implode()))
        .then(pl.lit("graph"))
        .when(pl.col("runner").is_not_null())
        .then(pl.lit("eager"))
        .otherwise(pl.lit(rest, dtype=pl.String))
    )
    return found.to_series()
