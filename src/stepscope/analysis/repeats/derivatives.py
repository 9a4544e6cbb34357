"""Derivatives that are computed one at a time: passes of autograd that go through the same nodes again and again, for one output each.

Such a pass returns what it computes (`torch.autograd.grad`), where a backward pass adds it to the gradients of parameters. Nodes in which ops
have numbers of their own make a graph for gradients of gradients (`create_graph=True`): a later pass goes through both, and needs both.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.host.loops import LOOPS, Loops
from stepscope.registers.policy.findings import MAJORITY
from stepscope.registers.policy.repeated_work import DERIVATIVE_PASSES_LEAST
from stepscope.trace.frames import conform
from stepscope.trace.lookup import are_named, is_named
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

NODE = r"^autograd::engine::evaluate_function: "
KEY = ["step", "sequence", "name"]
_ADDS = r"^torch::autograd::AccumulateGrad$"
_SUMS_UP = "AccumulateGrad"  # all of them have the same number


def backward_nodes(trace: Trace) -> pl.DataFrame:
    """event, name, step, sequence, start_ns of the nodes of the backward pass in the steps."""
    names = trace.events["name"].unique().drop_nulls()
    text = names.cast(pl.String)
    wanted = names.filter(text.str.contains(NODE) & ~text.str.contains(_SUMS_UP, literal=True))
    events = trace.events.filter(pl.col("name").is_in(wanted.implode()), pl.col("step").is_not_null()).select(
        "step", "start_ns", event="id", name=pl.col("name").cast(pl.String)
    )
    numbers = trace.ops.select("event", "sequence").drop_nulls()
    return events.join(numbers, on="event", how="inner")


def make_graphs(trace: Trace, nodes: pl.Series) -> bool:
    """Whether ops inside of these nodes have numbers of their own, as those whose gradients will be computed have."""
    events = trace.events
    numbered = trace.ops.filter(pl.col("sequence").is_not_null())["event"]
    ops = numbered.filter(
        are_named(events["name"].gather(numbered), lambda known: known.str.starts_with("aten::"))
    )
    around = ancestors(events, is_named(events, NODE)).gather(ops)
    return bool(around.is_in(nodes.implode()).any())


def one_by_one(trace: Trace, nodes: pl.DataFrame) -> pl.DataFrame | None:
    """Nodes (with `passes`) through which several passes go that add nothing up; none where these are few, None where most passes add up."""
    events = trace.events
    adds = events.filter(is_named(events, _ADDS)).select("step", "start_ns").drop_nulls().sort("start_ns")
    both = nodes.group_by(KEY).agg(
        first=pl.col("start_ns").min(), last=pl.col("start_ns").max(), passes=pl.len()
    )
    both = both.filter(pl.col("passes") > 1)
    between = adds["start_ns"].search_sorted(both["last"]) > adds["start_ns"].search_sorted(both["first"])
    if int(between.sum()) > MAJORITY * len(both):
        return None
    # Where gradients are added up later in the step, the last pass may be the one that does so.
    ends = adds.group_by("step").agg(pl.col("start_ns").max())
    rows = both.filter(~between).join(ends, on="step", how="left", maintain_order="left")
    rows = rows.with_columns(passes=pl.col("passes") - (pl.col("start_ns") > pl.col("last")).fill_null(False))
    rows = rows.filter(pl.col("passes") >= DERIVATIVE_PASSES_LEAST)
    rows = rows.filter(pl.col("passes") >= MAJORITY * pl.col("passes").max().over("step"))
    mine = nodes.join(rows.select(*KEY, "passes"), on=KEY, maintain_order="left")
    return mine.filter(pl.int_range(pl.len()).over(KEY, order_by="start_ns") < pl.col("passes"))


def as_loops(trace: Trace, passes: pl.DataFrame) -> Loops:
    """Those nodes as loops, one for each step."""
    events = trace.events
    frames = passes.group_by("step").agg(frame=pl.col("event").min(), iterations=pl.col("passes").min())
    found = frames.with_columns(
        launches=pl.lit(0), whole=pl.lit(False), passes=pl.lit(False), siblings=pl.lit(False)
    )
    mine = passes.join(frames, on="step", maintain_order="left")
    own = pl.repeat(None, len(events), dtype=pl.UInt32, eager=True).scatter(mine["event"], mine["frame"])
    around = ancestors(events, own.is_not_null())
    return Loops(
        conform(found.sort("frame"), LOOPS), pl.select(pl.coalesce(own, own.gather(around))).to_series()
    )
