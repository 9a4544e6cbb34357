"""What pieces cost that a loop copies to the device one by one, where one copy sends them all: the host stacks them first."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.transfers.copy_items import copy_items
from stepscope.analysis.host.loops import Loops
from stepscope.analysis.replay.plan import Plan
from stepscope.registers.calibration.launches import (
    PAGEABLE_RATE_BEST,
    PAGEABLE_RATE_WORST,
    STACKED_PIECE_BEST_NS,
    STACKED_PIECE_WORST_NS,
    STACKED_RATE_BEST,
    STACKED_RATE_WORST,
)


def with_stacked_inputs(case: Case, loops: Loops, change: Change) -> Change:
    """The host puts the inputs of all turns next to each other, and the driver reads them from there."""
    if case.trace.copies.is_empty():
        return change
    copied = _copied_in_loops(case, loops)
    return Change(
        _with_stacking(
            change.smallest, copied, STACKED_PIECE_WORST_NS, STACKED_RATE_WORST, PAGEABLE_RATE_WORST
        ),
        _with_stacking(change.largest, copied, STACKED_PIECE_BEST_NS, STACKED_RATE_BEST, PAGEABLE_RATE_BEST),
    )


def _copied_in_loops(case: Case, loops: Loops) -> pl.DataFrame:
    """item, pieces, bytes: for each step and loop, what its turns copy to the device, at the first of these copies."""
    launches = case.trace.links.filter(pl.col("why") == "launch").select("from", event="to").unique("event")
    sent = copy_items(case).filter(pl.col("direction") == "HtoD", pl.col("bytes") > 0)
    calls = sent.join(launches, on="event", how="left", maintain_order="left")
    calls = calls.with_columns(loop=loops.loop_of.gather(calls["from"])).drop_nulls("loop")
    return calls.group_by("step", "loop").agg(pl.col("item").min(), pl.col("bytes").sum(), pieces=pl.len())


def _with_stacking(plan: Plan, copied: pl.DataFrame, piece_ns: float, stacked: float, sent: float) -> Plan:
    """The host takes some time for each piece, and for their bytes: twice, to stack and to send them."""
    cost = pl.col("pieces") * piece_ns + pl.col("bytes") * (1 / stacked + 1 / sent)
    costs = copied.group_by("item").agg(cost.sum().round().cast(pl.Int64).alias("stacking"))
    items = plan.items.join(costs, on="item", how="left", maintain_order="left")
    added = pl.col("added_ns") + pl.col("stacking").fill_null(0)
    return replace(plan, items=items.with_columns(added_ns=added).drop("stacking"))
