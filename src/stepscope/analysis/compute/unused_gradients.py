"""Backward passes that go on after the last parameter of the optimizer has its gradient.

The optimizer step after a pass says by the shapes of its tensors what it updates. A gradient is the optimizer's while fewer of its
shape have come in the pass than the optimizer has. PyTorch leaves out lists of more than 30 tensors; then the optimizer's are the
first of the pass if these make up exactly as many blocks as its kernels have. What runs after the last of these is useless where
most of the matrices that follow have shapes that the optimizer does not have.
"""

from __future__ import annotations

import json
import math
from typing import Any

import polars as pl

from stepscope.analysis.compute.updated_blocks import UPDATED_LISTS, blocks_once
from stepscope.analysis.formulas.constants import LIST_CHUNK
from stepscope.analysis.frozen_facts import trained_shapes
from stepscope.registers.policy.findings import MAJORITY
from stepscope.trace.kept import kept_with_trace
from stepscope.trace.lookup import is_named
from stepscope.trace.scopes import ancestors, at_or_inside
from stepscope.trace.trace import Trace

_GRADIENT = "torch::autograd::AccumulateGrad"
NODE = r"^autograd::engine::evaluate_function: "
OPTIMIZER = r"^Optimizer\.step#"
_CLASS = r"^Optimizer\.step#([^.]+)"
_UPDATES = rf"{UPDATED_LISTS}|^aten::(addcdiv_|add_|lerp_|mul_|sub_)$"
_ONCE = "aten::addcdiv_"  # the last op of Adam and its kin

# Vectors, such as the scales of norms, are alike in all networks.
_IS_MATRIX = pl.col("shape").str.contains(",", literal=True)


def unused_nodes(trace: Trace) -> pl.Series:
    """The events of autograd's nodes that compute gradients which the optimizer after them does not use."""
    nothing = pl.Series("event", [], dtype=pl.UInt32)
    gradients, updates = find_gradients(trace), find_updates(trace)
    if gradients.is_empty() or updates.is_empty():
        return nothing
    others = ops_beside(trace, gradients["track"].unique())
    blocks = blocks_once(trace, updates.filter(pl.col("shape").is_null())["optimizer"].unique())
    ends = _ends(with_pass(gradients, others), updates, blocks)
    nodes = with_pass(find_named(trace, NODE), others)
    after = nodes.join(ends, on=["track", "pass"], maintain_order="left")
    found: pl.Series = after.filter(pl.col("start_ns") > pl.col("from_ns"))["id"].alias("event")
    return found


def find_named(trace: Trace, pattern: str) -> pl.DataFrame:
    """The events of steps with such names, by their start."""
    named = is_named(trace.events, pattern)
    found = trace.events.filter(named, pl.col("step").is_not_null()) if named.any() else trace.events.clear()
    return found.select(
        "id", "track", "start_ns", "dur_ns", "step", name=pl.col("name").cast(pl.String)
    ).sort("start_ns")


@kept_with_trace
def find_gradients(trace: Trace) -> pl.DataFrame:
    """id, track, start_ns, shape of each gradient, in their order."""
    found = find_named(trace, rf"^{_GRADIENT}$")
    if found.is_empty():
        return found.with_columns(shape=pl.lit(None, pl.String))
    text = pl.col("shapes").cast(pl.String).str.replace_all(" ", "", literal=True)
    shape = text.str.strip_prefix("[").str.strip_suffix("]")
    shapes = trace.ops.select(id="event", shape=shape)
    return found.join(shapes, on="id", maintain_order="left").drop_nulls("shape")


def ops_beside(trace: Trace, tracks: pl.Series) -> pl.Series:
    """When ops with a gradient are called outside of autograd's nodes, in order.

    Gradients of a device have threads of their own; those of the host are computed on the thread that asks for them.
    """
    events = trace.events
    numbered = trace.ops.filter(pl.col("sequence").is_not_null())["event"]
    nodes = is_named(events, NODE)
    if not nodes.any():
        outside = ~events["track"].gather(numbered).is_in(tracks.implode())
    else:
        outside = ~at_or_inside(events, nodes).gather(numbered)
    found: pl.Series = events["start_ns"].gather(numbered.filter(outside)).sort()
    return found


def with_pass(rows: pl.DataFrame, others: pl.Series) -> pl.DataFrame:
    """With `pass`: between two rows of one pass no other thread calls an op with a gradient."""
    return rows.with_columns(others.search_sorted(rows["start_ns"]).cast(pl.Int64).alias("pass"))


@kept_with_trace
def find_updates(trace: Trace) -> pl.DataFrame:
    """start_ns of each optimizer step, with shape and count of what it updates; without a shape where lists were left out."""
    steps, events = find_named(trace, OPTIMIZER), trace.events
    if steps.is_empty():
        return pl.DataFrame()
    hosts = events.filter(pl.col("kind") == "op")["track"].unique()  # devices repeat annotations
    steps = steps.filter(pl.col("track").is_in(hosts.implode()))
    if steps.is_empty():
        return pl.DataFrame()
    around = ancestors(events, events["id"].is_in(steps["id"].implode()))
    ops = find_named(trace, _UPDATES).select("id", op="name")
    ops = ops.with_columns(optimizer=around.gather(ops["id"])).drop_nulls("optimizer")
    ops = ops.join(trace.ops.select(id="event", shapes=pl.col("shapes").cast(pl.String)), on="id")
    texts = ops["shapes"].unique().drop_nulls()
    schema: dict[str, Any] = {"shapes": pl.String, "shape": pl.List(pl.String)}
    first = pl.DataFrame({"shapes": texts, "shape": [_updated(text) for text in texts]}, schema=schema)
    is_list = pl.col("op").str.contains(UPDATED_LISTS)
    known = ops.join(first, on="shapes").filter(is_list | pl.col("shape").is_not_null())
    known = known.explode("shape").filter(pl.col("shape").ne_missing("[]"))
    counted = _without_repeats(known.group_by("optimizer", "op", "shape").agg(count=pl.len()))
    most = counted.group_by("optimizer", "shape").agg(pl.col("count").max())
    most = _without_frozen(trace, steps, most)
    return steps.select("start_ns", optimizer="id").join(most, on="optimizer", how="left")


def _without_frozen(trace: Trace, steps: pl.DataFrame, most: pl.DataFrame) -> pl.DataFrame:
    """Where the capture says that some groups have a learning rate of zero, the shapes are those of the others."""
    known = trained_shapes(trace)
    class_ = pl.col("name").str.extract(_CLASS)
    mine = steps.select(optimizer="id", class_=class_).filter(pl.col("class_").is_in(list(known)))
    if mine.is_empty():
        return most
    rows = [(name, shape, count) for name, shapes in known.items() for shape, count in shapes.items()]
    schema = {"class_": pl.String, "shape": pl.String, "count": pl.UInt32}
    trained = mine.join(pl.DataFrame(rows, schema=schema, orient="row"), on="class_").select(most.columns)
    others = most.filter(~pl.col("optimizer").is_in(mine["optimizer"].implode()))
    return pl.concat([others, trained.cast(dict(most.schema))])  # type: ignore[arg-type]


def _without_repeats(counted: pl.DataFrame) -> pl.DataFrame:
    """Without ops on single tensors where one is known that comes once for each parameter: others may come twice."""
    has_once = (pl.col("op") == _ONCE).any().over("optimizer", "shape")
    is_list = pl.col("op").str.contains(UPDATED_LISTS)
    return counted.filter((pl.col("op") == _ONCE) | ~has_once | is_list)


def _updated(shapes: str) -> list[str] | None:
    """The shapes of the first argument: a tensor, or a list of them; None where the list was left out."""
    try:
        first = json.loads(shapes)[0]
    except (ValueError, IndexError, TypeError):
        return None
    if not isinstance(first, list) or not first:
        return None
    found = first if isinstance(first[0], list) else [first]
    return [json.dumps(one, separators=(",", ":")) for one in found]


def _ends(gradients: pl.DataFrame, updates: pl.DataFrame, blocks: pl.DataFrame) -> pl.DataFrame:
    """track, pass, from_ns: the last gradient that is used, of passes that go on for nothing."""
    # Optimizer steps with no gradient between them share the passes before them.
    updates = updates.with_columns(
        turn=gradients["start_ns"].search_sorted(updates["start_ns"]).cast(pl.Int64)
    )
    left_out = updates.filter(pl.col("shape").is_null())["turn"].unique()
    turns = updates["turn"].unique().sort()
    place = turns.search_sorted(pl.int_range(len(gradients), eager=True), side="right")
    rows = gradients.with_columns(turn=turns.gather(place.set(place >= len(turns), None)))
    is_left_out = pl.col("turn").is_in(left_out.implode())
    rows = pl.concat(
        [
            _used_by_shape(rows.filter(~is_left_out), updates),
            _used_by_blocks(rows.filter(is_left_out), updates, blocks),
        ]
    )
    last = pl.col("start_ns").filter("used").max().over("pass")
    after = rows.with_columns(from_ns=last).filter(pl.col("start_ns") > pl.col("from_ns"))
    ends = after.group_by("track", "pass").agg(
        pl.col("from_ns").first(), unknown=(~pl.col("has_shape")).filter(_IS_MATRIX).mean()
    )
    return ends.filter(pl.col("unknown") > MAJORITY).drop("unknown")


def _used_by_shape(rows: pl.DataFrame, updates: pl.DataFrame) -> pl.DataFrame:
    """With `has_shape`: whether the optimizer has such a parameter, and `used`: whether this is one of as many as it has."""
    wanted = updates.group_by("turn", "shape").agg(pl.col("count").sum())
    rows = rows.join(wanted, on=["turn", "shape"], how="left", maintain_order="left")
    nth = pl.int_range(pl.len()).over("pass", "shape")
    return rows.with_columns(
        used=(nth < pl.col("count")).fill_null(False), has_shape=pl.col("count").is_not_null()
    ).drop("count")


def _used_by_blocks(rows: pl.DataFrame, updates: pl.DataFrame, blocks: pl.DataFrame) -> pl.DataFrame:
    """The same of passes whose first gradients make up the blocks of the optimizer; without those where the last ones do so too."""
    optimizers = updates.select("turn", "optimizer").unique()
    known = optimizers.join(blocks, on="optimizer", how="left").group_by("turn")
    wanted = known.agg(wanted=pl.col("blocks").sum(), has_all=pl.col("blocks").is_not_null().all())
    sizes = {text: -(-size_of(text) // LIST_CHUNK) for text in rows["shape"].unique()}
    mine = pl.col("shape").replace_strict(sizes, return_dtype=pl.Int64)
    rows = rows.join(wanted.filter("has_all").drop("has_all"), on="turn", maintain_order="left")
    so_far = mine.cum_sum().over("pass")
    from_here = mine.cum_sum(reverse=True).over("pass")
    rows = rows.with_columns(used=so_far <= pl.col("wanted"), at_end=so_far == pl.col("wanted"))
    is_known = pl.col("at_end").any() & ~(from_here == pl.col("wanted")).any()
    rows = rows.filter(is_known.over("pass"))
    return rows.with_columns(has_shape=pl.col("used").any().over("pass", "shape")).drop("wanted", "at_end")


def size_of(shape: str) -> int:
    """How many elements a tensor of this shape has; 0 if it is damaged."""
    try:
        return math.prod(int(side) for side in json.loads(shape))
    except (ValueError, TypeError):
        return 0
