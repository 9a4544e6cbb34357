"""Ops of the framework that the host computes itself: nothing inside them is launched."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.host.names import NO_COMPUTATION
from stepscope.trace.graphs import captured_calls
from stepscope.trace.kept import kept_with_trace
from stepscope.trace.lookup import events_named
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

_LIBRARY_OP = r"^[A-Za-z_]\w*::\w"


@kept_with_trace
def computed_on_host(trace: Trace) -> pl.Series:
    """For each event whether it is such an op, and does not only look at tensors or make room for them."""
    events = trace.events
    is_op = events["kind"] == "op"
    named = events_named(
        events, lambda names: names.str.contains(_LIBRARY_OP) & ~names.str.contains(NO_COMPUTATION)
    )
    return is_op & named & ~_launches(trace, is_op)


def _launches(trace: Trace, is_op: pl.Series) -> pl.Series:
    """For each event whether it launches something or is an op around that, however far out.

    While a graph is captured its work is recorded into it: an op that does so computes nothing itself.
    """
    events = trace.events
    calls = pl.concat([trace.links.filter(pl.col("why") == "launch")["from"], captured_calls(trace)]).unique()
    outer, found = ancestors(events, is_op), calls
    nearest = outer.gather(calls).drop_nulls().unique()
    while len(nearest):
        found = pl.concat([found, nearest])
        nearest = outer.gather(nearest).drop_nulls().unique()
        nearest = nearest.filter(~nearest.is_in(found.implode()))
    return pl.repeat(False, len(events), dtype=pl.Boolean, eager=True).scatter(found, True)
