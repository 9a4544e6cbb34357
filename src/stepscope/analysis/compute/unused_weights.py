"""Weights that get a gradient in every pass and that no optimizer updates: frozen ones that still require a gradient.

Where PyTorch writes down what an optimizer updates, these are the matrices of other shapes. It leaves out lists of more than 30
tensors. The blocks of a kernel on lists then bound how many elements it covers: if all weights of a shape have more together,
hardly any of them is among those.
"""

from __future__ import annotations

import msgspec
import polars as pl

from stepscope.analysis.compute.unused_gradients import (
    find_gradients,
    find_named,
    find_updates,
    ops_beside,
    size_of,
    with_pass,
)
from stepscope.analysis.compute.updated_blocks import updated_blocks
from stepscope.analysis.formulas.constants import LIST_CHUNK
from stepscope.registers.policy.findings import MAJORITY
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

_MATRIX = 2
_BACKWARD = r"Backward\d*$"
_PRODUCTS = r"^aten::(mm|bmm)$"
_CONVOLVES = "aten::convolution_backward"
_OF_WEIGHTS = r"(?i)wgrad"


def unused_products(trace: Trace) -> pl.Series:
    """The kernels that compute gradients of such weights."""
    nothing = pl.Series("event", [], dtype=pl.UInt32)
    shapes = _unused_shapes(trace)
    if not shapes:
        return nothing
    events = trace.events
    ops = find_named(trace, rf"{_PRODUCTS}|^{_CONVOLVES}$").select("id", op_name="name")
    nodes = find_named(trace, _BACKWARD)["id"]
    inside = ancestors(events, events["id"].is_in(nodes.implode())).gather(ops["id"]).is_not_null()
    ops = ops.filter(inside).join(
        trace.ops.select(id="event", shapes=pl.col("shapes").cast(pl.String)), on="id"
    )
    texts = ops.select("op_name", "shapes").unique().drop_nulls()
    mine = [_makes(name == _CONVOLVES, text, shapes) for name, text in texts.iter_rows()]
    wanted = ops.join(texts.filter(pl.Series(mine, dtype=pl.Boolean)), on=["op_name", "shapes"], how="semi")
    kernels = trace.kernels.select("event", id="op").join(wanted, on="id")
    name = events["name"].gather(kernels["event"]).cast(pl.String)
    found: pl.Series = kernels["event"].filter(
        (kernels["op_name"] != _CONVOLVES) | name.str.contains(_OF_WEIGHTS)
    )
    return found


def _makes(convolves: bool, text: str, wanted: set[tuple[int, ...]]) -> bool:
    """Whether an op of these shapes makes a gradient of one of the wanted ones, or of its transpose."""
    shapes = _decoded(text)
    if convolves:
        return len(shapes) > _MATRIX and tuple(shapes[2]) in wanted
    if len(shapes) != _MATRIX or min(map(len, shapes)) < _MATRIX:
        return False
    rows, columns = shapes[0][-2], shapes[1][-1]
    return (rows, columns) in wanted or (columns, rows) in wanted


def _unused_shapes(trace: Trace) -> set[tuple[int, ...]]:
    """Shapes of matrices most of whose gradients nothing uses, if they are most of all gradients."""
    gradients, updates = find_gradients(trace), find_updates(trace)
    sharded = (trace.events["role"] == "collective").any()
    if gradients.is_empty() or updates.is_empty() or sharded:
        return set()
    rows = with_pass(gradients, ops_beside(trace, gradients["track"].unique()))
    sizes = {text: size_of(text) for text in rows["shape"].unique()}
    counted = rows.group_by("pass", "shape").agg(count=pl.len()).group_by("shape").agg(pl.col("count").max())
    total = {text: count * sizes[text] for text, count in counted.iter_rows()}
    if updates["shape"].null_count():
        most = _most_updated(trace, updates["optimizer"].unique())
        unused = {text for text, size in total.items() if size > most > 0}
    else:
        unused = set(total) - set(updates["shape"])
    unused = {text for text in unused if "," in text and total[text] > 0}
    if sum(total[text] for text in unused) <= MAJORITY * sum(total.values()):
        return set()
    return {tuple(_decoded(f"[{text}]")[0]) for text in unused}


def _most_updated(trace: Trace, optimizers: pl.Series) -> int:
    """Elements that the kernels of an optimizer step cover at most; 0 where other kernels update as well."""
    covered = updated_blocks(trace, optimizers)["blocks"].max()
    return LIST_CHUNK * covered if isinstance(covered, int) else 0


def _decoded(text: str) -> list[list[int]]:
    try:
        return msgspec.json.decode(text, type=list[list[int]])
    except (msgspec.DecodeError, ValueError):
        return []
