"""The backward pass of a loop: what is batched forwards is batched backwards."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.host.loops import Loops
from stepscope.trace.lookup import are_named
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

_ENGINE = r"^autograd::engine::evaluate_function: "
_SUMS_UP = "AccumulateGrad"  # all of them have the same number


def with_backward(trace: Trace, loops: Loops) -> Loops:
    """The loops, and in each of them the gradients of its ops, which the engine computes on a thread of its own."""
    numbers = trace.ops.select("event", "sequence").drop_nulls()
    numbers = numbers.with_columns(
        step=trace.events["step"].gather(numbers["event"]), frame=loops.loop_of.gather(numbers["event"])
    )
    key = ["step", "sequence"]
    forward = numbers.drop_nulls(["step", "frame"]).unique(key, keep="first", maintain_order=True)
    engine = are_named(
        trace.events["name"],
        lambda known: known.str.contains(_ENGINE) & ~known.str.contains(_SUMS_UP, literal=True),
    )
    nodes = numbers.filter(engine.gather(numbers["event"]), pl.col("frame").is_null())
    nodes = nodes.select("event", *key).join(forward.select(*key, "frame"), on=key)
    if nodes.is_empty():
        return loops
    return Loops(loops.found, _below(trace.events, nodes, loops.loop_of))


def _below(events: pl.DataFrame, nodes: pl.DataFrame, loop_of: pl.Series) -> pl.Series:
    """The loop of each event, where all that is in one of the nodes belongs to its loop."""
    is_node = pl.repeat(False, len(events), dtype=pl.Boolean, eager=True).scatter(nodes["event"], True)
    frames = pl.repeat(None, len(events), dtype=loop_of.dtype, eager=True).scatter(
        nodes["event"], nodes["frame"]
    )
    nearest = pl.select(pl.when(is_node).then(events["id"]).otherwise(ancestors(events, is_node))).to_series()
    return pl.select(pl.coalesce(loop_of, frames.gather(nearest))).to_series()
