"""Ops by what they cost on the device, then on the host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import polars as pl

from stepscope.analysis.context import RankContext
from stepscope.analysis.ops.calls import ops_table
from stepscope.analysis.ops.graph_calls import graphs_table
from stepscope.analysis.ops.stacks import stacks_of
from stepscope.analysis.options import Options
from stepscope.lazy import dataclass
from stepscope.reports.columns import capped, only_value, sum_or_null
from stepscope.reports.model.report import GraphRow, OpRow, Ops
from stepscope.reports.sections.section import Section

_TIMES = ("host_total_ns", "host_self_ns", "device_total_ns", "device_self_ns")
# What `stepscope.op` measured around its calls.
_CHANGES = ("allocator_delta_bytes", "device_delta_bytes")
_KNOWN_OR_NOT = ("memory_bytes", *_CHANGES, "flops", "bytes")
_WORDS = ("scope", "placement", "execution", "shapes", "forward")


@dataclass(frozen=True)
class RankOps:
    """The ops of one rank, and the graphs that it launched."""

    rows: pl.DataFrame
    graphs: pl.DataFrame


def of_rank(context: RankContext) -> RankOps:
    """The ops of the rank's steps, summed."""
    calls, by = context.op_calls, context.options.ops_by
    if "stack" in by:
        calls = calls.with_columns(stack=stacks_of(context.trace, calls["event"]))
    found = ops_table(calls, ("name", *by))
    rows = _with_changes(found, context.trace.info.capture.get("ops"))
    return RankOps(rows, graphs_table(context.trace, context.op_calls))


def _with_changes(ops: pl.DataFrame, told: object) -> pl.DataFrame:
    """The two changes of memory by each custom op. They are known by name: of a name in several rows, for none of them."""
    rows = told if isinstance(told, dict) else {}
    names = ops["name"].cast(pl.String).to_list()
    once = {name for name, count in Counter(names).items() if count == 1}
    return ops.with_columns(
        pl.Series(key, [_change(rows.get(name), key) if name in once else None for name in names], pl.Int64)
        for key in _CHANGES
    )


def _change(row: object, key: str) -> int | None:
    """As the sidecar has it, which may hold anything."""
    value = row.get(key) if isinstance(row, dict) else None
    return value if type(value) is int and abs(value) < 1 << 62 else None


def joined(ranks: Sequence[RankOps], options: Options) -> Mapping[str, Any]:
    """Summed over ranks. `share` is of device time, or of host time where there is no device."""
    if not ranks:
        return {"ops": Ops()}
    keys = ["name", *options.ops_by]
    rows = pl.concat([rank.rows for rank in ranks], how="diagonal_relaxed")
    words = [word for word in _WORDS if word in rows.columns]
    rows = rows.with_columns(pl.col("name", *words).cast(pl.String))
    summed = rows.group_by(keys, maintain_order=True).agg(
        pl.col("calls", *_TIMES).sum(),
        *(sum_or_null(name) for name in _KNOWN_OR_NOT),
        *(only_value(word) for word in words if word not in keys),
    )
    ordered = summed.sort(["device_self_ns", "host_self_ns", "name"], descending=[True, True, False])
    cost = "device_self_ns" if summed["device_self_ns"].sum() else "host_self_ns"
    total = int(summed[cost].sum())
    shared = ordered.with_columns(share=(pl.col(cost) / total).round(6) if total else pl.lit(None))
    kept = capped(shared, options.limit)
    found = msgspec.convert(kept.to_dicts(), list[OpRow])
    graphs = _graphs(pl.concat([rank.graphs for rank in ranks]), options)
    return {
        "ops": Ops(total=len(shared), shown=len(found), by=list(options.ops_by), rows=found, graphs=graphs)
    }


def _graphs(rows: pl.DataFrame, options: Options) -> list[GraphRow]:
    """Summed over ranks; the kernels are those of the rank where they take longest."""
    if rows.is_empty():
        return []
    summed = rows.group_by("name", maintain_order=True).agg(
        pl.col("scope", "nodes").first(),
        pl.col("kernels").get(pl.col("device_ns").arg_max()),
        pl.col("calls", "host_ns", "device_ns").sum(),
        named_share=(pl.col("named_ns").sum() / pl.col("device_ns").sum()).fill_nan(0.0).round(6),
    )
    ordered = summed.sort(["device_ns", "name"], descending=[True, False])
    return msgspec.convert(capped(ordered, options.limit).to_dicts(), list[GraphRow])


SECTION = Section("ops", of_rank, joined)
