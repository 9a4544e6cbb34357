"""Plants a slower op into what was recorded of a run: for every format, since it is done behind the readers."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from stepscope.diffs.data.samples import CELL, Side

BUSY = {"device_ns": "compute", "host_ns": "host_compute"}


def slower_in_samples(side: Side, op: str, factor: float, measure: str) -> Side:
    """Every call of the op takes `factor` times as long, on the device or on the host, and the step is longer by as much."""
    samples = side.samples
    slow = pl.when(pl.col("name") == op).then(factor).otherwise(1.0)
    ops = samples.ops.with_columns((pl.col(measure) * slow).round().cast(pl.Int64))
    added = (
        samples.ops.filter(pl.col("name") == op)
        .group_by(*CELL)
        .agg(added=(pl.col(measure).sum() * (factor - 1)).round().cast(pl.Int64))
    )
    cells = samples.cells.join(added, on=list(CELL), how="left", maintain_order="left")
    cells = cells.with_columns(pl.col("ns") + pl.col("added").fill_null(0)).drop("added")
    part = BUSY[measure]
    parts = samples.parts.join(added, on=list(CELL), how="left", maintain_order="left")
    more = pl.when(pl.col("part") == part).then(pl.col("added").fill_null(0)).otherwise(0)
    parts = parts.with_columns(pl.col("ns") + more).drop("added")
    slow_kernel = pl.when(pl.col("op") == op).then(factor).otherwise(1.0)
    kernels = samples.kernels.with_columns((pl.col("ns") * slow_kernel).round().cast(pl.Int64))
    return Side(replace(samples, cells=cells, parts=parts, ops=ops, kernels=kernels), side.report)
