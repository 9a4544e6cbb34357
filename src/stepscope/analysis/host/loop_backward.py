"""The backward pass of a loop: what is batched forwards is batched backwards."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.host.loops import Loops
from stepscope.trace.lookup import events_named
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

_ENGINE = r"^autograd::engine::evaluate_function: "
_NUMBER = ["step", "sequence"]
_SUMS_UP = "AccumulateGrad"  # all of them have the same number


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
    nodes = numbers.filter(is_node & ~sums.gather(numbers["event"])).join(forward, on=_NUMBER)
    return loops if nodes.is_empty() else Loops(loops.found, _below(events, nodes, loops.loop_of))


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
