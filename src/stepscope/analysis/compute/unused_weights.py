"""Weights that get a gradient in every pass and that no optimizer updates: frozen ones that still require a gradient.

Where PyTorch writes down what an optimizer updates, these are the weights of other shapes. It leaves out lists of more than 30
tensors. The blocks of a kernel on lists then bound how many elements it covers: if all weights of a shape have more together,
hardly any of them is among those.

Products make their gradients, a part of the backward pass of convolutions and norms, sums where they are biases, and scatters where
they are tables. Autocast then casts them, and if nothing clears them, each is added to that of the step before.
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
from stepscope.trace.columns import repeated
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

Shape = tuple[int, ...]
_MATRIX = 2
_BACKWARD = r"Backward\d*$"
_OF_ONE_WEIGHT = r"\b(Mm|Addmm|Linear)Backward\d*$"
_OF_CASTS = r"\bToCopyBackward\d*$"
_PRODUCTS = ("aten::mm", "aten::bmm")
_SUM = "aten::sum"
_CONVOLVES = "aten::convolution_backward"
_LOOKS_UP = "aten::embedding_dense_backward"
_CASTS = "aten::copy_"
_NORM = r"^aten::\w*(layer|rms|group)_norm\w*_backward$"
_MAKERS = rf"^({'|'.join((*_PRODUCTS, _SUM, _CONVOLVES, _LOOKS_UP, _CASTS))})$|{_NORM}"
# These ops make the gradients of their inputs as well, by other kernels.
_PARTS = ((rf"^{_CONVOLVES}$", r"(?i)w_?grad|grad_?weight"), (_NORM, r"(?i)gamma|beta"))


def unused_weight_ops(trace: Trace) -> pl.DataFrame:
    """id of the ops that make gradients of such weights or add them up, and `only`: by their names, which of their kernels, if not all."""
    wanted = _unused_shapes(trace)
    if not wanted:
        return pl.DataFrame(schema={"id": pl.UInt32, "only": pl.String})
    only = pl.coalesce(pl.when(pl.col("op").str.contains(op)).then(pl.lit(names)) for op, names in _PARTS)
    made = _makers(trace, wanted).select("id", only=only)
    gradients = find_gradients(trace)
    texts = [text for text in gradients["shape"].unique() if _shape_of(text) in wanted]
    added = gradients.filter(pl.col("shape").is_in(texts)).select("id", only=pl.lit(None, pl.String))
    return pl.concat([made, added])


def unused_weight_kernels(trace: Trace, ops: pl.DataFrame) -> pl.Series:
    """The kernels of these ops that do so."""
    of_ops, kernels = _within(trace.events, ops["id"]), trace.kernels.select("event", "op")
    rows = kernels.with_columns(id=of_ops.gather(kernels["op"])).join(ops, on="id", maintain_order="left")
    names = trace.events["name"].gather(rows["event"]).cast(pl.String)
    found: pl.Series = rows.filter(pl.col("only").is_null() | names.str.contains(rows["only"]))["event"]
    return found


def _within(events: pl.DataFrame, chosen: pl.Series) -> pl.Series:
    """For each event the chosen one that it is or that it is in, or null."""
    among = repeated(False, len(events), pl.Boolean).scatter(chosen, True)
    own = pl.when(among).then(events["id"])
    found: pl.Series = pl.select(pl.coalesce(own, ancestors(events, among))).to_series()
    return found


def _makers(trace: Trace, wanted: set[Shape]) -> pl.DataFrame:
    """id, op of what makes the gradients in the nodes of autograd."""
    events, nodes = trace.events, find_named(trace, _BACKWARD).select(node="id", of="name")
    ops = find_named(trace, _MAKERS).select("id", op="name")
    texts = pl.col("shapes", "concrete_inputs").cast(pl.String)
    ops = ops.with_columns(node=_within(events, nodes["node"]).gather(ops["id"])).join(nodes, on="node")
    ops = ops.join(trace.ops.select(texts, id="event"), on="id").drop_nulls("shapes").sort("id")
    is_product = pl.col("op").is_in(_PRODUCTS)
    products = _products(ops.filter(is_product), wanted)
    calls = ops.filter(~is_product).select("op", "shapes", "concrete_inputs").unique()
    mine = [_makes(op, shapes, inputs, wanted) for op, shapes, inputs in calls.iter_rows()]
    calls = calls.filter(pl.Series(mine, dtype=pl.Boolean))
    others = ops.filter(~is_product).join(calls, on=calls.columns, how="semi", nulls_equal=True)
    of_layer = pl.col("node").is_in(products["node"].implode())
    is_cast = pl.col("of").str.contains(_OF_CASTS)
    others = others.filter((pl.col("op") != _SUM) | of_layer, (pl.col("op") != _CASTS) | is_cast)
    return pl.concat([products, others]).select("id", "op")


def _products(ops: pl.DataFrame, wanted: set[Shape]) -> pl.DataFrame:
    """Those that make such gradients: one for each layer with one weight, since that of its input may have the shape of another one.

    They take equally long: the same three sides are multiplied.
    """
    texts = ops["shapes"].unique().to_list()
    mine = ops.filter(pl.col("shapes").is_in([text for text in texts if _is_product(text, wanted)]))
    turn = pl.int_range(pl.len()).over("node")
    return mine.filter((turn == 0) | ~pl.col("of").str.contains(_OF_ONE_WEIGHT))


def _is_product(text: str, wanted: set[Shape]) -> bool:
    """Whether a product of these factors has a wanted shape, either way round."""
    given = _decoded(text)
    if len(given) != _MATRIX or min(map(len, given)) < _MATRIX:
        return False
    made = given[0][-2], given[1][-1]
    return made in wanted or made[::-1] in wanted


def _makes(op: str, shapes: str, inputs: str | None, wanted: set[Shape]) -> bool:
    """Whether an op other than a product makes a gradient of one of the wanted shapes."""
    given = _decoded(shapes)
    if op == _CONVOLVES:
        return len(given) > _MATRIX and tuple(given[2]) in wanted
    if op == _SUM:
        return bool(given) and len(given[0]) == _MATRIX and tuple(given[0][1:]) in wanted
    if op == _CASTS:
        return bool(given) and tuple(given[0]) in wanted
    if op == _LOOKS_UP:
        return bool(given) and (_rows_of(inputs), *given[0][-1:]) in wanted
    return any(len(one) == 1 and tuple(one) in wanted for one in given)


def _rows_of(inputs: str | None) -> int:
    """How many rows a table has: the third argument of the op, 0 where it is not known."""
    try:
        return int(msgspec.json.decode(inputs or "", type=list[str])[2])
    except (msgspec.DecodeError, ValueError, IndexError):
        return 0


def _unused_shapes(trace: Trace) -> set[Shape]:
    """Shapes of weights most of whose gradients nothing uses, if they are most of all gradients."""
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
        if _are_updated_elsewhere(updates, set(total), sum(total[text] for text in unused)):
            return set()
    unused = {text for text in unused if total[text] > 0}
    if sum(total[text] for text in unused) <= MAJORITY * sum(total.values()):
        return set()
    return {_shape_of(text) for text in unused}


def _are_updated_elsewhere(updates: pl.DataFrame, known: set[str], unused: int) -> bool:
    """Whether the optimizer updates as much in other shapes, such as one long vector of all weights, or nothing that got a gradient."""
    own = updates.select("shape", "count").unique("shape").rows()
    others = sum(count * size_of(text) for text, count in own if text not in known)
    return others >= unused or not any(text in known for text, _ in own)


def _most_updated(trace: Trace, optimizers: pl.Series) -> int:
    """Elements that the optimizers' kernels cover at most in a step; 0 where other kernels update as well."""
    blocks = updated_blocks(trace, optimizers).group_by("optimizer").agg(pl.col("blocks").max())
    by_step = blocks.group_by(trace.events["step"].gather(blocks["optimizer"])).agg(pl.col("blocks").sum())
    covered = by_step["blocks"].max()
    return LIST_CHUNK * covered if isinstance(covered, int) else 0


def _shape_of(text: str) -> Shape:
    return tuple(next(iter(_decoded(f"[{text}]")), ()))


def _decoded(text: str) -> list[list[int]]:
    try:
        return msgspec.json.decode(text, type=list[list[int]])
    except (msgspec.DecodeError, ValueError):
        return []
