"""Whether an op ran eagerly, one by one as Python asked for it, or as a part of a graph that was built before."""

from __future__ import annotations

import polars as pl

from stepscope.trace.lookup import distinct
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

# What runs the ops below it: TensorFlow's executor of graphs, its eager executor, and torch.compile's programs.
_GRAPH = r"^ExecutorState::|^Torch-Compiled Region|CompiledFxGraph|^CompiledFunction"
_EAGER = r"^Eager(Kernel|Local)?Execute"


def execution(trace: Trace, event: pl.Series) -> pl.Series:
    """`eager`, `graph` or null for each of these ops."""
    events = trace.events
    names = distinct(events["name"])
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
