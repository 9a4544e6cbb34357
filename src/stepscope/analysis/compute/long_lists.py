"""Bytes of ops on lists of tensors too long for the profile to write down: PyTorch leaves out lists of more than 30.

An optimizer's lists are as long as the parameters, whose gradients a backward pass accumulates one by one, with their shapes. A kernel
on lists covers at most one chunk of elements with each block, which bounds them where several passes accumulate.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.formulas.constants import LIST_CHUNK
from stepscope.analysis.formulas.lists import passes
from stepscope.analysis.ops.flops import cost_of
from stepscope.registers.policy.compute import SMALL_KERNEL_NS
from stepscope.trace.lookup import rows_by_event
from stepscope.trace.trace import Trace

_GRADIENT = "torch::autograd::AccumulateGrad"
_LISTS = r"^aten::_(fused|foreach)_"


def with_long_lists(trace: Trace, kernels: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows (call, owner, dur_ns, flops, bytes) in which such ops have their bytes, and a FLOP for each element."""
    name = trace.events["name"].gather(rows["owner"]).cast(pl.String)
    is_open = rows["bytes"].is_null() & name.str.contains(_LISTS).fill_null(False)
    is_open &= rows["dur_ns"] >= SMALL_KERNEL_NS  # counters of steps are long lists, too, of one element each
    parameters = _parameters(trace) if is_open.any() else 0
    if not parameters:
        return rows
    ops = trace.ops
    dtypes = ops["dtypes"].gather(rows_by_event(ops["event"], len(trace.events)).gather(rows["owner"]))
    facts = pl.DataFrame({"name": name, "dtypes": dtypes.cast(pl.String), "open": is_open})
    distinct = facts.filter("open").unique()
    known = distinct.with_columns(
        pl.Series(
            "passes", [passes(op, types or "") for op, types, _ in distinct.iter_rows()], dtype=pl.Int64
        )
    )
    joined = facts.join(known, on=facts.columns, how="left", nulls_equal=True, maintain_order="left")
    covered = (pl.col("blocks").fill_null(0) * LIST_CHUNK).sum().over("call")
    elements = pl.min_horizontal(covered, pl.lit(parameters))
    size = elements * pl.col("passes") * pl.col("item")
    both = rows.with_columns(joined["passes"], kernels["blocks"], kernels["item"])
    return both.with_columns(
        flops=pl.coalesce("flops", pl.when(size > 0).then(elements)),
        bytes=pl.coalesce("bytes", pl.when(size > 0).then(size)),
    ).select(rows.columns)


def _parameters(trace: Trace) -> int:
    """Elements of all gradients that a step accumulates, in the median over the steps."""
    ops, events = trace.ops, trace.events
    mine = ops.filter((events["name"].gather(ops["event"]).cast(pl.String) == _GRADIENT).fill_null(False))
    step = events["step"].gather(mine["event"])
    rows = mine.select(pl.col("shapes", "dtypes").cast(pl.String), step=step).drop_nulls()
    counts = rows.group_by("step", "shapes", "dtypes").len()
    sizes = []
    for shapes, dtypes in counts.select("shapes", "dtypes").iter_rows():
        cost = cost_of("aten::relu", shapes, dtypes, None)
        sizes.append(cost.flops if cost else 0)
    by_step = counts.with_columns(size=pl.Series(sizes, dtype=pl.Int64) * counts["len"].cast(pl.Int64))
    summed = by_step.group_by("step").agg(pl.col("size").sum())["size"]
    middle = summed.median()
    return int(middle) if isinstance(middle, float) else 0
