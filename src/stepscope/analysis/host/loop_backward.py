"""The backward pass of a loop: what is batched forwards is batched backwards."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.host.loops import Loops
from stepscope.registers.policy.findings import MAJORITY
from stepscope.trace.lookup import events_named
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

_ENGINE = r"^autograd::engine::evaluate_function: "
_BACKWARD = "run_backward"
_NUMBER = ["step", "sequence"]
_SUMS_UP = "AccumulateGrad"  # all of them have the same number, or none
_ADDS = "torch::autograd::AccumulateGrad"  # inside of such a node, if it does so
_NODE = ["event", "start", "frame"]


def with_backward(trace: Trace, loops: Loops) -> Loops:
    """The loops, and in each of them the gradients of its ops, which the engine computes on a thread of its own."""
    events = trace.events
    known, sums = _nodes(trace, loops), _sums(events)
    passes = _passes_of_turns(events, loops)
    others = known.select(*_NODE)
    added = [
        _of_siblings(events, loops, sums, others),
        _in_passes(events.filter(sums & events["step"].is_not_null()), passes),
        _walked_again(events, known.filter(pl.col("frame").is_null()), passes),
    ]
    nodes = pl.concat([others.drop_nulls("frame"), *added]).unique("event", keep="first", maintain_order=True)
    return loops if nodes.is_empty() else Loops(loops.found, _below(events, nodes, loops.loop_of))


def _nodes(trace: Trace, loops: Loops) -> pl.DataFrame:
    """event, step, sequence, start, frame of the nodes that add nothing up; the frame is that of the loop which called their op, if one did."""
    events = trace.events
    numbers = trace.ops.select("event", "sequence").drop_nulls()
    step, start = (events[name].gather(numbers["event"]) for name in ("step", "start_ns"))
    numbers = numbers.with_columns(step=step, start=start).drop_nulls("step")
    engine = events_named(events, lambda known: known.str.contains(_ENGINE))
    sums = events_named(events, lambda known: known.str.contains(_SUMS_UP, literal=True))
    is_node = engine.gather(numbers["event"])
    inside = ancestors(events, engine).gather(numbers["event"]).is_not_null()
    forward = _makers(numbers.filter(~is_node & ~inside), loops)
    others = numbers.filter(is_node & ~sums.gather(numbers["event"]))
    return others.join(forward, on=_NUMBER, how="left", maintain_order="left")


def _sums(events: pl.DataFrame) -> pl.Series:
    """Which events are nodes that add gradients to those of a parameter."""
    return events_named(events, lambda known: known.str.contains(f"{_ENGINE}.*{_SUMS_UP}"))


def loops_of_derivatives(trace: Trace, loops: Loops) -> pl.Series:
    """The frames whose turns go through the nodes of ops before the loop, and add no gradients up: they compute derivatives one by one."""
    events = trace.events
    passes = _passes_of_turns(events, loops)
    if passes.is_empty():
        return passes["frame"]
    adds = _in_passes(events.filter(events_named(events, lambda known: known == _ADDS)), passes)["frame"]
    before = _nodes(trace, loops).filter(pl.col("frame").is_null())
    again = _walked_again(events, before, passes)["frame"].unique()
    found: pl.Series = again.filter(~again.is_in(adds.implode()))
    return found


def merged_parameters(trace: Trace, whole: Loops) -> float:
    """What is left of the parameters that get a gradient when the modules of siblings become one: a share of their number."""
    events = trace.events
    mine = pl.DataFrame({"frame": whole.loop_of.filter(_sums(events) & events["step"].is_not_null())})
    if mine.is_empty():
        return 1.0
    siblings = whole.found.filter("siblings").select("frame", left=1 / pl.col("iterations"))
    left = mine.join(siblings, on="frame", how="left")["left"].fill_null(1.0)
    return float(left.sum()) / len(left)


def _of_siblings(events: pl.DataFrame, loops: Loops, sums: pl.Series, others: pl.DataFrame) -> pl.DataFrame:
    """Gradients that are added to those of a parameter right after a node of a loop whose turns have modules of their own.

    They belong to that loop: one module for all turns has one parameter. If all turns use the same module, it has so anyway.
    """
    siblings = loops.found.filter("siblings")["frame"]
    added = events.filter(sums & events["step"].is_not_null())
    added = added.select("track", event="id", start="start_ns").sort("start")
    before = others.select("start", "frame", track=events["track"].gather(others["event"])).sort("start")
    found = added.join_asof(before, on="start", by="track", check_sortedness=False)
    return found.filter(pl.col("frame").is_in(siblings.implode())).select(*_NODE)


def _passes_of_turns(events: pl.DataFrame, loops: Loops) -> pl.DataFrame:
    """start, end, frame, iterations of the backward passes of loops that have one in most turns."""
    passes = events.filter(events_named(events, lambda known: known.str.contains(_BACKWARD, literal=True)))
    passes = passes.select(
        start="start_ns",
        end=pl.col("start_ns") + pl.col("dur_ns"),
        frame=loops.loop_of.gather(passes["id"]),
    ).drop_nulls()
    often = passes.group_by("frame").len().join(loops.found.select("frame", "iterations"), on="frame")
    often = often.filter(pl.col("len") >= MAJORITY * pl.col("iterations"))
    return passes.join(often, on="frame").sort("start")


def _in_passes(nodes: pl.DataFrame, passes: pl.DataFrame) -> pl.DataFrame:
    """Those of these events that run in such a pass: gradients that are added up in each turn, which one pass for all adds once."""
    mine = nodes.select(event="id", start="start_ns").sort("start")
    found = mine.join_asof(passes, on="start")
    return found.filter(pl.col("start") < pl.col("end")).select(*_NODE)


def _walked_again(events: pl.DataFrame, others: pl.DataFrame, passes: pl.DataFrame) -> pl.DataFrame:
    """Nodes of ops before the loop through which most of its turns go: one pass for all goes through them once."""
    rows = events[others["event"]] if len(passes) else events.clear()
    mine = _in_passes(rows, passes)
    named = mine.join(others.select("event", *_NUMBER), on="event", maintain_order="left").with_columns(
        name=events["name"].gather(mine["event"])
    )
    iterations = passes.select("frame", "iterations").unique()
    often = pl.len().over("frame", "name", *_NUMBER) >= MAJORITY * pl.col("iterations")
    return named.join(iterations, on="frame", maintain_order="left").filter(often).select(*_NODE)


def _makers(forward: pl.DataFrame, loops: Loops) -> pl.DataFrame:
    """step, sequence, frame: the numbers that ops of a loop took.

    Ops without a gradient have the number that the next one with a gradient takes: the last of them has taken it.
    """
    last = forward.sort("start").unique(_NUMBER, keep="last", maintain_order=True)
    return last.select(*_NUMBER, frame=loops.loop_of.gather(last["event"])).drop_nulls("frame")


def _below(events: pl.DataFrame, nodes: pl.DataFrame, loop_of: pl.Series) -> pl.Series:
    """The loop of each event, where all that is in one of the nodes belongs to its loop."""
    is_node = pl.repeat(False, len(events), dtype=pl.Boolean, eager=True).scatter(nodes["event"], True)
    frames = pl.repeat(None, len(events), dtype=loop_of.dtype, eager=True).scatter(
        nodes["event"], nodes["frame"]
    )
    nearest = pl.select(pl.when(is_node).then(events["id"]).otherwise(ancestors(events, is_node))).to_series()
    return pl.select(pl.coalesce(loop_of, frames.gather(nearest))).to_series()
