"""Passes over whole embedding tables on a host that computes by itself: zeros for gradients, and updates by the optimizer.

Without a device the ops take the time, and their shapes say over what. A table counts if the model only looks rows up in it: where
it is multiplied by as well, as the weights of a head that shares them are, its gradient is dense anyway.
"""

from __future__ import annotations

import json
import math
from typing import Any

import polars as pl

from stepscope.analysis.compute.unused_gradients import NODE, find_named, ops_beside
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

# Where dense gradients are made, cleared and used.
_MADE = r"^aten::embedding_dense_backward$"
_USED = rf"^Optimizer\.(step|zero_grad)#|{NODE}torch::autograd::AccumulateGrad$"
_LOOKS_UP = r"^aten::(embedding|index_select|gather|detach)$"


def looked_up_tables(trace: Trace, tables: pl.DataFrame) -> pl.DataFrame:
    """The tables that ops of the forward pass only look rows up in; by rows and elements."""
    ops = find_named(trace, r"^aten::")
    shaped = ops.join(
        trace.ops.select("sequence", id="event", shapes=pl.col("shapes").cast(pl.String)), on="id"
    )
    forward = shaped.filter(pl.col("sequence").is_not_null(), ~pl.col("name").str.contains(_LOOKS_UP))
    forward = forward.filter(pl.col("start_ns").is_in(ops_beside(trace, forward["track"].unique()).implode()))
    others = {tuple(shape) for text in forward["shapes"].unique() for shape in _tensors(text)}
    sides = [(rows, elements // rows) for rows, elements in tables.select("rows", "elements").iter_rows()]
    alone = [rows > 0 and not {(rows, columns), (columns, rows)} & others for rows, columns in sides]
    return tables.filter(pl.Series(alone, dtype=pl.Boolean))


def table_passes(trace: Trace, tables: pl.DataFrame) -> pl.DataFrame:
    """event, share of the ops that pass over such tables as a whole: all of an op on one, a part of one on a list of tensors."""
    events = trace.events
    around = find_named(trace, f"{_MADE}|{_USED}")["id"]
    inside = ancestors(events, events["id"].is_in(around.implode())).is_not_null()
    ops = trace.ops.select("event", shapes=pl.col("shapes").cast(pl.String)).drop_nulls()
    ops = ops.filter(inside.gather(ops["event"]))
    wanted = {(rows, elements // rows) for rows, elements in tables.select("rows", "elements").iter_rows()}
    shares = {text: _share(text, wanted) for text in ops["shapes"].unique()}
    schema: dict[str, Any] = {"shapes": pl.String, "share": pl.Float64}
    table = pl.DataFrame(list(shares.items()), schema=schema, orient="row").filter(pl.col("share") > 0)
    return ops.join(table, on="shapes", maintain_order="left").select("event", "share")


def _share(text: str, tables: set[tuple[int, int]]) -> float:
    """How much of what an op works on are these tables: of its first argument, a tensor or a list of them."""
    first = _first(text)
    elements = sum(map(math.prod, first))
    return sum(math.prod(shape) for shape in first if tuple(shape) in tables) / elements if elements else 0.0


def _first(text: str) -> list[list[int]]:
    decoded = _decoded(text)
    first = decoded[0] if decoded else []
    return first if _is_list(first) else [first] if first else []


def _tensors(text: str | None) -> list[list[int]]:
    """The shapes of all tensors that an op takes."""
    return [shape for each in _decoded(text) for shape in (each if _is_list(each) else [each])]


def _is_list(shape: list[Any]) -> bool:
    return bool(shape) and isinstance(shape[0], list)


def _decoded(text: str | None) -> list[list[Any]]:
    try:
        found = json.loads(text or "[]")
    except ValueError:
        return []
    return [each for each in found if isinstance(each, list)] if isinstance(found, list) else []
