"""Kernels by the time they took, over all ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import polars as pl

from stepscope.analysis.context import RankContext
from stepscope.analysis.kernels.calls import kernels_table
from stepscope.analysis.options import Options
from stepscope.reports.columns import capped
from stepscope.reports.model.report import KernelRow, Kernels
from stepscope.reports.sections.section import Section

_KEYS = ("name", "op", "grid", "block", "registers", "shared_bytes", "precision", "tensor_cores", "eligible")
_MEANS = ("occupancy", "blocks_per_sm", "waves_per_sm")


def of_rank(context: RankContext) -> pl.DataFrame:
    """The kernels of the rank's steps, summed."""
    return kernels_table(context.kernel_calls).drop("share")


def joined(ranks: Sequence[pl.DataFrame], options: Options) -> Mapping[str, Any]:
    """Summed over ranks; means are weighted by calls."""
    if not ranks:
        return {"kernels": Kernels()}
    # Only the columns themselves are the same for all ranks: names are held apart by each.
    rows = pl.concat([rank.with_columns(pl.col("name", "op", "precision").cast(pl.String)) for rank in ranks])
    calls = pl.col("calls")
    summed = rows.group_by(_KEYS, maintain_order=True).agg(
        *((pl.col(name) * calls).sum() / calls.filter(pl.col(name).is_not_null()).sum() for name in _MEANS),
        pl.col("min_ns").min(),
        pl.col("max_ns").max(),
        pl.col("calls", "total_ns").sum(),
    )
    total = int(summed["total_ns"].sum())
    figured = summed.with_columns(
        *(pl.col(name).fill_nan(None) for name in _MEANS),
        mean_ns=(pl.col("total_ns") / calls).round().cast(pl.Int64),
        share=(pl.col("total_ns") / total).round(6) if total else pl.lit(None, dtype=pl.Float64),
    ).sort("total_ns", "name", descending=[True, False], maintain_order=True)
    found = msgspec.convert(capped(figured, options.limit).to_dicts(), list[KernelRow])
    return {"kernels": Kernels(total=len(figured), shown=len(found), rows=found)}


SECTION = Section("kernels", of_rank, joined)
