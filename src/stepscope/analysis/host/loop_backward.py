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
_NODE = ["event", "start", "frame"]


def with_backward(trace: Trace, loops: Loops) -> Loops:
    """The loops, and in each of them the gradients of its ops, which the engine computes on a thread of its own."""
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
    others = others.join(forward, on=_NUMBER, how="left", maintain_order="left").select(*_NODE)
    added = [_of_siblings(events, loops, sums & engine, others), _of_turns(events, loops, sums & engine)]
    nodes = pl.concat([others, *added]).drop_nulls("frame").unique("event", keep="first", maintain_order=True)
    return loops if nodes.is_empty() else Loops(loops.found, _below(events, nodes, loops.loop_of))


def merged_parameters(trace: Trace, whole: Loops) -> float:
    """What is left of the parameters that get a gradient when the modules of siblings become one: a share of their number."""
    events = trace.events
    nodes = events_named(events, lambda known: known.str.contains(f"{_ENGINE}.*{_SUMS_UP}"))
    mine = pl.DataFrame({"frame": whole.loop_of.filter(nodes & events["step"].is_not_null())})
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


def _of_turns(events: pl.DataFrame, loops: Loops, sums: pl.Series) -> pl.DataFrame:
    """Gradients that are added up in backward passes of which a loop has one in most turns: one pass for all adds them once."""
    passes = events.filter(events_named(events, lambda known: known.str.contains(_BACKWARD, literal=True)))
    passes = passes.select(
        start="start_ns",
        end=pl.col("start_ns") + pl.col("dur_ns"),
        frame=loops.loop_of.gather(passes["id"]),
    ).drop_nulls()
    often = passes.group_by("frame").len().join(loops.found.select("frame", "iterations"), on="frame")
    often = often.filter(pl.col("len") >= MAJORITY * pl.col("iterations"))
    mine = passes.join(often, on="frame", how="semi").sort("start")
    added = events.filter(sums & events["step"].is_not_null()).select(event="id", start="start_ns")
    found = added.sort("start").join_asof(mine, on="start")
    return found.filter(pl.col("start") < pl.col("end")).select(*_NODE)


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
