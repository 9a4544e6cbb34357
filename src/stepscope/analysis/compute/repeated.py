"""Kernels that compute again what the forward pass had computed: activations that checkpointing dropped.

Proof is one of: the kernel was launched below a frame or node of the checkpoint; the op that a compiled program names it after is
rematerialised, which a checkpoint of JAX leaves in its name; or a matrix product or attention of the same op, shapes and types as one of the forward thread runs on autograd's thread, and not as the
formula of a gradient, be it PyTorch's or a function of one's own: gradients are computed with autograd off, so that their ops have no number in its sequence. Elementwise work alone proves nothing: it counts only together with such a product.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.compute.classes import PRODUCTS, are_products
from stepscope.trace.lookup import distinct, is_named, rows_by_event
from stepscope.trace.schema import Columns
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

# torch.utils.checkpoint, without and with re-entrant autograd.
_FRAME = r"torch/utils/checkpoint\.py\(\d+\): (unpack_hook|recompute_fn|backward)"
_ENGINE = r"^autograd::engine::evaluate_function"
_GRADIENT = r"Backward\d*$"
_REMATERIALISED = r"rematted_computation|(^|/)remat\d*(/|$)"
REPEATED: Columns = {"event": pl.UInt32, "how": pl.String}


def repeated_kernels(trace: Trace, kernels: pl.DataFrame, op_calls: pl.DataFrame) -> pl.DataFrame:
    """event, how (frame, program, product) of the kernels (event, class) that run again; `op_calls` has event and scope."""
    found = [_in_programs(trace, kernels, op_calls)]
    launch = _launches(trace, kernels)
    marked = _below_frames(trace, launch)
    found.append(marked if len(marked) else _same_products(trace, launch))
    return pl.concat(found).unique("event", keep="first", maintain_order=True)


def repeated_ops(trace: Trace, op_calls: pl.DataFrame) -> pl.DataFrame:
    """The same of ops that a host computes itself; `op_calls` has event, name, step."""
    computing = op_calls.filter(pl.col("step").is_not_null())
    kind = pl.when(are_products(computing["name"])).then(pl.lit("matmul")).otherwise(pl.lit("other"))
    launch = computing.select("event", "name", kind.alias("class"), op="event")
    marked = _below_frames(trace, launch)
    return marked if len(marked) else _same_products(trace, launch)


def _named(events: pl.DataFrame, pattern: str, kinds: tuple[str, ...]) -> pl.Series:
    return is_named(events, pattern) & events["kind"].is_in(kinds)


def _launches(trace: Trace, kernels: pl.DataFrame) -> pl.DataFrame:
    """event, class, name, op of the kernels that an op launched."""
    row = rows_by_event(trace.kernels["event"], len(trace.events)).gather(kernels["event"])
    op = trace.kernels["op"].gather(row)
    return kernels.select("event", "class", "name").with_columns(op=op).drop_nulls("op")


def _in_programs(trace: Trace, kernels: pl.DataFrame, op_calls: pl.DataFrame) -> pl.DataFrame:
    """Kernels that are ops of a program: their scope is that of the instruction they belong to."""
    row = rows_by_event(op_calls["event"], len(trace.events)).gather(kernels["event"])
    scope = op_calls["scope"].gather(row)
    names = distinct(scope)
    wanted = names.filter(names.cast(pl.String).str.contains(_REMATERIALISED))
    again = scope.is_in(wanted.implode()).fill_null(False)
    return kernels.filter(again).select("event", how=pl.lit("program"))


def _below_frames(trace: Trace, launch: pl.DataFrame) -> pl.DataFrame:
    """Where stacks were recorded; the gradients that a re-entrant checkpoint computes inside its frame do not count."""
    events = trace.events
    frames = _named(events, _FRAME, ("python",))
    if not frames.any():
        return pl.DataFrame(schema=REPEATED)
    frame = ancestors(events, frames).gather(launch["op"])
    engine = ancestors(events, _named(events, _ENGINE, ("op",))).gather(launch["op"])
    depth = events["depth"]
    inner = (depth.gather(engine) > depth.gather(frame)).fill_null(False)
    return launch.filter(frame.is_not_null() & ~inner).select("event", how=pl.lit("frame"))


def _same_products(trace: Trace, launch: pl.DataFrame) -> pl.DataFrame:
    """Products of the forward threads that run again inside a node of autograd, and all that runs before the last of them."""
    events = trace.events
    nodes = _named(events, _GRADIENT, ("op",))
    if not nodes.any():
        return pl.DataFrame(schema=REPEATED)
    rows = _with_calls(trace, launch.with_columns(node=ancestors(events, nodes).gather(launch["op"])))
    products = rows.filter(pl.col("class").is_in(PRODUCTS))
    key = ["op_name", "shapes", "dtypes"]
    forward = products.filter(pl.col("node").is_null()).select(key).unique()
    linked = trace.links.filter(pl.col("why") == "forward-backward")["from"]
    again = products.filter(pl.col("node").is_not_null(), pl.col("shapes").is_not_null())
    # The formula of a gradient calls its products itself; what a forward pass calls has an op around it or a gradient of its own.
    is_forward = (pl.col("around") != pl.col("node")) | pl.col("op").is_in(linked.implode())
    if rows["is_numbered"].any():  # else the recorder wrote no numbers
        is_forward &= pl.col("is_numbered")
    again = again.filter(is_forward.fill_null(False)).join(forward, on=key, how="semi", nulls_equal=True)
    if again.is_empty():
        return pl.DataFrame(schema=REPEATED)
    return _all_before_the_last(rows, again)


def _with_calls(trace: Trace, rows: pl.DataFrame) -> pl.DataFrame:
    events, ops = trace.events, trace.ops
    at = rows_by_event(ops["event"], len(events))
    row, around = at.gather(rows["op"]), ancestors(events, events["kind"] == "op").gather(rows["op"])
    number = ops["sequence"]
    return rows.with_columns(
        is_numbered=number.gather(row).is_not_null() | number.gather(at.gather(around)).is_not_null(),
        op_name=events["name"].gather(rows["op"]),
        shapes=ops["shapes"].gather(row),
        dtypes=ops["dtypes"].gather(row),
        around=around,
        called_ns=events["start_ns"].gather(rows["op"]),
    )


def _all_before_the_last(rows: pl.DataFrame, again: pl.DataFrame) -> pl.DataFrame:
    last = again.group_by("node").agg(pl.col("called_ns").max().alias("last_ns"))
    inside = rows.join(last, on="node", maintain_order="left").filter(
        pl.col("called_ns") <= pl.col("last_ns")
    )
    return inside.select("event", how=pl.lit("product"))
