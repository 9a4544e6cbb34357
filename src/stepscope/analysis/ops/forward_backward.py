"""Which op of the forward pass an op of the backward pass belongs to, and with it the module that it is for."""

from __future__ import annotations

from threading import Lock
from weakref import WeakKeyDictionary

import polars as pl

from stepscope.trace.lookup import are_named, rows_by_event
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

_ENGINE = "autograd::engine::evaluate_function"


_known: WeakKeyDictionary[Trace, pl.Series | None] = WeakKeyDictionary()
_at_once = Lock()  # ops and memory ask side by side


def forward_ops(trace: Trace) -> pl.Series | None:
    """For every event the op whose gradient it, or the op around it, computes; None where nothing is linked."""
    with _at_once:
        if trace not in _known:
            _known[trace] = _forward_ops(trace)
        return _known[trace]


def _forward_ops(trace: Trace) -> pl.Series | None:
    links = trace.links.filter(pl.col("why") == "forward-backward").select("from", "to")
    if links.is_empty():
        return None
    events = trace.events
    links = pl.concat([links, _around(events, links)])
    link = rows_by_event(links["to"], len(events))
    is_backward = link.is_not_null()
    own = pl.select(pl.when(is_backward).then(events["id"]).otherwise(ancestors(events, is_backward)))
    found: pl.Series = links["from"].gather(link.gather(own.to_series()))
    return found


def _around(events: pl.DataFrame, links: pl.DataFrame) -> pl.DataFrame:
    """The engine's own op around each linked one, which sums up and checks what that has computed."""
    around = links.select("from", to=events["parent"].gather(links["to"]))
    engine = are_named(events["name"].gather(around["to"]), lambda names: names.str.starts_with(_ENGINE))
    return around.filter(engine)


def scopes_of(trace: Trace, op: pl.Series, forward: pl.Series | None) -> pl.Series:
    """The module of each op; of a backward op without one, that of its forward op."""
    row = rows_by_event(trace.ops["event"], len(trace.events))
    scope = trace.ops["scope"].gather(row.gather(op))
    if forward is None:
        return scope
    inherited = trace.ops["scope"].gather(row.gather(forward.gather(op)))
    return pl.select(pl.coalesce(scope, inherited)).to_series()
