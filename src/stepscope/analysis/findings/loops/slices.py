"""What is left of the gradients of a tensor's slices when they become one: of each op's work, and of what the host does for it.

What fills whole tensors goes, and so do the sums of these. The pieces are still written, all in one stack. Where slices overlap, or are
taken twice, pieces are added up instead of whole tensors.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.registers.calibration.host_ops import (
    STACKED_SLICE_HOST_LEAST,
    STACKED_SLICE_HOST_MOST,
    UNFOLDED_WORST,
)
from stepscope.registers.policy.compute import SMALL_KERNEL_NS
from stepscope.registers.policy.findings import BATCHED_EFFICIENCY_LEAST, BATCHED_EFFICIENCY_MOST
from stepscope.registers.policy.host_code import BATCHED_LONG_OP_LEAST
from stepscope.trace.lookup import events_named
from stepscope.trace.scopes import ancestors, at_or_inside
from stepscope.trace.trace import Trace

_COPY = "aten::copy_"
_SUMS = ("aten::add", "aten::add_")
_MEETS = pl.col("overlaps") | pl.col("again")
_SMALL = pl.col("device_ns") < SMALL_KERNEL_NS


def parts_of_slices(trace: Trace, nodes: pl.DataFrame) -> pl.DataFrame:
    """The nodes and all that is inside of them: event, the columns of its node, is_copy, is_sum, and host_least and host_most, what is left of the host's time."""
    events = trace.events
    is_node = pl.repeat(False, len(events), dtype=pl.Boolean, eager=True).scatter(nodes["node"], True)
    rows = events.select(
        event="id",
        node=pl.when(is_node).then(events["id"]).otherwise(ancestors(events, is_node)),
        is_copy=at_or_inside(events, events_named(events, lambda known: known == _COPY)),
        is_sum=at_or_inside(
            events,
            events_named(events, lambda known: known.is_in(_SUMS)) & is_node.gather(events["parent"]),
        ),
    ).drop_nulls("node")
    rows = rows.join(nodes, on="node", maintain_order="left")
    stays = pl.col("is_sum") & pl.col("again")
    may_stay = pl.col("is_sum") & _MEETS
    least = (STACKED_SLICE_HOST_LEAST + 1 / pl.col("slices")).clip(upper_bound=1.0)
    most = (STACKED_SLICE_HOST_MOST + 1 / pl.col("slices_least")).clip(upper_bound=1.0)
    return rows.with_columns(
        host_least=pl.when(stays).then(1.0).otherwise(least),
        host_most=pl.when(may_stay).then(1.0).otherwise(most),
    )


def work_of_slices(case: Case, parts: pl.DataFrame) -> pl.DataFrame:
    """The device's work that these parts launch: event, least and most of its time, and the parts' columns."""
    launches = case.trace.links.filter(pl.col("why") == "launch").select("to", part="from")
    known = case.compute.kernels.filter(pl.col("time_ns") > 0, pl.col("reason") != "unknown")
    bounds = known.select(to="event", bound=pl.col("ideal_ns") / pl.col("time_ns"))
    rows = launches.join(parts.rename({"event": "part"}), on="part").unique("to", maintain_order=True)
    rows = rows.join(bounds, on="to", how="left", maintain_order="left")
    rows = rows.with_columns(device_ns=case.trace.events["dur_ns"].gather(rows["to"]))
    # A sum of pieces is a kernel of its own, however small.
    added = (
        pl.when(_SMALL).then(1.0).otherwise(pl.max_horizontal("piece", SMALL_KERNEL_NS / pl.col("device_ns")))
    )
    return rows.with_columns(
        least=_left(
            _copied(BATCHED_EFFICIENCY_MOST, "slices"), pl.when("again").then("piece").otherwise(0.0), 0.0
        ),
        most=_left(
            _copied(BATCHED_EFFICIENCY_LEAST, "slices_least"),
            pl.when(_MEETS).then(added).otherwise(0.0),
            1 / pl.col("slices_least"),
        ),
    ).rename({"to": "event"})


def computed_of_slices() -> tuple[pl.Expr, pl.Expr]:
    """The same shares of ops that a host computes itself: long ones."""
    added = pl.when(_MEETS).then("piece").otherwise(0.0)
    unfolded = pl.when("overlaps").then(UNFOLDED_WORST).otherwise(0.0)
    most = pl.max_horizontal(1 / pl.col("slices_least"), unfolded)
    return (
        _left(pl.lit(BATCHED_LONG_OP_LEAST), added, 0.0),
        _left(pl.lit(1.0), pl.max_horizontal(added, unfolded), most),
    )


def dispatched_of_slices() -> tuple[pl.Expr, pl.Expr]:
    """And of short ones: to unfold a few windows takes as long as their slices."""
    return pl.col("host_least"), pl.when("overlaps").then(1.0).otherwise("host_most")


def _left(copied: pl.Expr, added: pl.Expr, filled: float | pl.Expr) -> pl.Expr:
    """What is left of the work of a part, by what it does."""
    return pl.when("is_copy").then(copied).when("is_sum").then(added).otherwise(filled)


def _copied(efficiency: float, slices: str) -> pl.Expr:
    """What one stack takes of the time of its pieces, at some share of the bound of its work."""
    needed = pl.coalesce("bound", pl.when(_SMALL).then(0.0).otherwise(1.0)) / efficiency
    return pl.max_horizontal(1 / pl.col(slices), needed).clip(upper_bound=1.0)
