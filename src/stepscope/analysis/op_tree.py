"""Ops below the modules or name scopes they ran in, with their time on host and device and how well they use the device's FLOPs.

Utilisation is time at the peak / time: what the FLOPs of the kernels would take at the best peak of their number format, over the
time of those kernels whose FLOPs are known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.analysis.context import RankContext
from stepscope.analysis.ops.flame import NO_SCOPE
from stepscope.native import order
from stepscope.registers.calibration.devices import GIGA
from stepscope.registers.policy.tables import DEEPEST_STACK, FLAME_NODES
from stepscope.trace.columns import buffer, series

SUMS = ("host_ns", "device_ns", "at_peak_ns", "known_ns")
_NODES = {"name": pl.String, "parent": pl.Int64, "is_op": pl.Boolean, "calls": pl.Int64}


@dataclass(frozen=True)
class OpTree:
    """`nodes` has name, parent (-1 at the top), is_op, calls, each of SUMS as `self_` and `total_`, and `utilisation`; parents come first."""

    nodes: pl.DataFrame
    left_out: int = 0


def op_tree(context: RankContext) -> OpTree:
    """Of all steps of a rank, or of the whole recording where there are none."""
    calls = context.op_calls
    inside = calls.filter(pl.col("step").is_not_null()) if calls["step"].count() else calls
    work = _work_by_op(context)
    rows = (
        inside.join(work, on="event", how="left", maintain_order="left")
        .group_by(pl.col("scope", "name").cast(pl.String), maintain_order=True)
        .agg(
            calls=(~pl.col("repeated")).sum().cast(pl.Int64),
            host_ns=pl.col("host_self_ns").sum(),
            device_ns=pl.col("device_self_ns").sum(),
            at_peak_ns=pl.col("at_peak_ns").sum().round().cast(pl.Int64),
            known_ns=pl.col("known_ns").sum().cast(pl.Int64),
        )
    )
    return _finished(_placed(rows))


def _work_by_op(context: RankContext) -> pl.DataFrame:
    """event of the op, at_peak_ns and known_ns of the kernels that it launched."""
    found = context.compute
    kernels = found.kernels.filter(pl.col("flops").is_not_null(), pl.col("time_ns") > 0)
    rates = _peak_rates(kernels, found.peaks)
    launched = context.trace.kernels.select("event", owner="op")
    return (
        kernels.join(rates, on=["device", "precision"], nulls_equal=True)
        .join(launched, on="event", how="left")
        .group_by(event=pl.coalesce("owner", "event"))
        .agg(
            at_peak_ns=(pl.col("flops") / pl.col("flops_per_ns")).sum(),
            known_ns=pl.col("time_ns").sum(),
        )
    )


def _peak_rates(kernels: pl.DataFrame, peaks: dict[Any, Any]) -> pl.DataFrame:
    """device, precision and flops_per_ns of all that have a peak."""
    rows = []
    for device, precision in kernels.select("device", "precision").unique().iter_rows():
        known = peaks.get(device)
        rate = known.best_flops_per_s(precision or "unknown") if known else None
        if rate:
            rows.append((device, precision, rate / GIGA))
    schema = {"device": pl.Int32, "precision": pl.String, "flops_per_ns": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _placed(rows: pl.DataFrame) -> pl.DataFrame:
    """A node for each scope and op, those above before those below."""
    places: dict[tuple[int, str, bool], int] = {}
    sums: list[tuple[int, ...]] = []  # calls and each of SUMS
    nothing = (0,) * (1 + len(SUMS))
    for scope, name, *own in rows.select("scope", "name", "calls", *SUMS).iter_rows():
        at = -1
        above = scope.split("/")[:DEEPEST_STACK] if scope else [NO_SCOPE]
        for word, is_op in [*((word, False) for word in above), (name or "", True)]:
            key = at, word, is_op
            if key not in places:
                places[key] = len(sums)
                sums.append(nothing)
            at = places[key]
        sums[at] = tuple(old + (new or 0) for old, new in zip(sums[at], own, strict=True))
    nodes = [(word, up, is_op, *mine) for (up, word, is_op), mine in zip(places, sums, strict=True)]
    schema = _NODES | {f"self_{name}": pl.Int64 for name in SUMS}
    return pl.DataFrame(nodes, schema=schema, orient="row")


def _finished(nodes: pl.DataFrame) -> OpTree:
    """With totals; nodes without any time are left out, and the smallest where there are too many."""
    up = nodes["parent"].replace(-1, order.NONE).cast(pl.UInt32)
    totals = [
        series(f"total_{name}", order.subtree_sums(buffer(up), buffer(nodes[f"self_{name}"])), pl.Int64)
        for name in SUMS
    ]
    nodes = nodes.with_columns(*totals).with_row_index("id")
    time = pl.col("total_host_ns") + pl.col("total_device_ns")
    some = nodes.filter(time > 0)
    # An ancestor's total is no smaller and its number is lower: whoever stays, they stay.
    kept = some.sort(time, -pl.col("id").cast(pl.Int64), descending=True).head(FLAME_NODES).sort("id")
    places = pl.DataFrame({"parent": kept["id"].cast(pl.Int64), "place": pl.int_range(len(kept), eager=True)})
    known = pl.col("total_known_ns") > 0
    return OpTree(
        kept.join(places, on="parent", how="left", maintain_order="left")
        .with_columns(
            parent=pl.col("place").fill_null(-1),
            utilisation=pl.when(known).then((pl.col("total_at_peak_ns") / pl.col("total_known_ns")).round(6)),
        )
        .drop("id", "place"),
        len(some) - len(kept),
    )
