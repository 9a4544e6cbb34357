"""Modules of one class that a function calls one after the other, none of which needs the result of another: one layer for each channel, field or head.

The layers of a model are called in the same way, but each gets what the one before returned. Two things show that these do not:
a result that cannot be the next one's input, because it has another width or is not an index, and a slice of the same tensor that is cut
for each call.
"""

from __future__ import annotations

import math

import polars as pl

from stepscope.analysis.shapes import Shape, shapes_in
from stepscope.registers.policy.findings import LOOP_ITERATIONS
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

_MODULE = "nn.Module: "
_NUMBER = r"_\d+$"
_WIDENS = "nn.Module: Linear"  # whose result has the width of its weights
_LOOKS_UP = ("aten::embedding", "aten::embedding_bag")
_COUNTS = "aten::arange"  # where the bags of a table begin
_CUTS = "aten::select"
_GROUP = ["frame", "class"]


def sibling_modules(trace: Trace, called: pl.DataFrame) -> pl.DataFrame:
    """call, first: of these calls (call, frame, name) those of such modules, each with the name of the first of its siblings."""
    calls = _candidates(trace, called)
    if calls.is_empty():
        return pl.DataFrame(schema={"call": pl.UInt32, "first": called.schema["name"]})
    calls = _with_cuts(trace, _with_first_op(trace, calls))
    known = {
        (kind, op, text, cut): _describe(kind, op, text, cut)
        for kind, op, text, cut in calls.select("class", "op", "shapes", "cut").unique().iter_rows()
    }
    described = [known[row] for row in calls.select("class", "op", "shapes", "cut").iter_rows()]
    calls = calls.with_columns(
        work=pl.Series([work for work, _, _ in described], dtype=pl.String),
        apart=pl.Series([apart for _, apart, _ in described], dtype=pl.Boolean),
        own=pl.Series([own for _, _, own in described], dtype=pl.Boolean),
    )
    alike = (pl.col("work").null_count() == 0) & (pl.col("work").n_unique() == 1)
    own = pl.col("own").all() & (pl.col("cutter").n_unique() == pl.len())
    found = calls.group_by(_GROUP).agg(
        fits=alike & (pl.col("apart").all() | own), first=pl.col("name").first()
    )
    return calls.join(found.filter("fits"), on=_GROUP, maintain_order="left").select("call", "first")


def _candidates(trace: Trace, called: pl.DataFrame) -> pl.DataFrame:
    """call, frame, name, class, start_ns: many modules of one class, each called once by a frame."""
    names = called["name"].cast(pl.String)
    calls = called.select("call", "frame", "name").with_columns(
        text=names, start_ns=trace.events["start_ns"].gather(called["call"])
    )
    modules = calls.filter(pl.col("text").str.starts_with(_MODULE))
    modules = modules.with_columns(pl.col("text").str.replace(_NUMBER, "").alias("class"))
    once = pl.col("name").n_unique().over(_GROUP) == pl.len().over(_GROUP)
    return modules.filter(pl.len().over(_GROUP) >= LOOP_ITERATIONS, once).sort("start_ns")


def _with_first_op(trace: Trace, calls: pl.DataFrame) -> pl.DataFrame:
    """The calls with the name (op) and the shapes of the first op in each."""
    events = trace.events
    wanted = pl.repeat(False, len(events), dtype=pl.Boolean, eager=True).scatter(calls["call"], True)
    inside = ancestors(events, wanted)
    ops = trace.ops.select("event", pl.col("shapes").cast(pl.String))
    ops = ops.with_columns(call=inside.gather(ops["event"])).drop_nulls()
    ops = ops.with_columns(
        op=events["name"].gather(ops["event"]).cast(pl.String), start=events["start_ns"].gather(ops["event"])
    )
    first = (
        ops.filter(pl.col("op") != _COUNTS)
        .sort("start", "event")
        .unique("call", keep="first", maintain_order=True)
    )
    return calls.join(first.select("call", "op", "shapes"), on="call", how="left", maintain_order="left")


def _with_cuts(trace: Trace, calls: pl.DataFrame) -> pl.DataFrame:
    """The calls with the op that cut a slice in the same frame last before (cutter), and the shapes that it was given (cut)."""
    events = trace.events
    ops = trace.ops.select(cutter="event", cut=pl.col("shapes").cast(pl.String))
    ops = ops.with_columns(
        frame=events["parent"].gather(ops["cutter"]),
        start_ns=events["start_ns"].gather(ops["cutter"]),
        name=events["name"].gather(ops["cutter"]).cast(pl.String),
    )
    mine = pl.col("frame").is_in(calls["frame"].unique().implode())
    cuts = ops.filter(mine, pl.col("name") == _CUTS).drop("name").sort("start_ns")
    return calls.join_asof(cuts, on="start_ns", by="frame", check_sortedness=False)


def _describe(kind: str, op: str | None, text: str | None, cut: str | None) -> tuple[str | None, bool, bool]:
    """What a module does, whether its result cannot be the input of its like, and whether it got a slice of its own."""
    shapes = shapes_in(text)
    if op is None or not shapes:
        return None, False, False
    if op in _LOOKS_UP and len(shapes) > 1:  # tables of all heights fit into one, with an offset for each
        return f"{op} {shapes[0][1:]} {shapes[1]}", True, True
    given, weights = shapes[0], shapes[1] if len(shapes) > 1 else ()
    widens = kind == _WIDENS and bool(given) and len(weights) > 1 and weights[0] != given[-1]
    return f"{op} {text}", widens, _is_slice(given, shapes_in(cut))


def _is_slice(given: Shape, cut: list[Shape]) -> bool:
    """Whether this may be one of the slices along some side of what was cut."""
    if not cut or not given or len(cut[0]) != len(given) + 1 or math.prod(given) == 0:
        return False
    return any(cut[0][:side] + cut[0][side + 1 :] == given for side in range(len(cut[0])))
