"""The least time that a kernel's work needs on its device: max(FLOPs / peak of its format, bytes / bandwidth).

The bandwidth is that of the device's memory, or that of its L2 where what the op touches fits into half of the L2: then it
may still be there. It is not where most of it are weights, of which the step reads more than the L2 holds (`from_memory`).
"""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.analysis.compute.classes import PRODUCTS
from stepscope.analysis.kernels.device_peaks import Peaks
from stepscope.registers.calibration.devices import GIGA
from stepscope.registers.calibration.kernels import L2_OF_MEMORY
from stepscope.registers.policy.compute import CACHED_SHARE
from stepscope.trace.schema import Columns

_RATES: Columns = {
    "device": pl.Int32,
    "precision": pl.String,
    "product": pl.Boolean,
    "flops_per_ns": pl.Float64,
}
_MEMORY: Columns = {"device": pl.Int32, "hbm": pl.Float64, "l2": pl.Float64, "fits": pl.Float64}


def least_time(rows: pl.DataFrame, peaks: dict[int | None, Peaks]) -> pl.DataFrame:
    """least_ns and bound (flops, hbm, l2) of rows with device, precision, class, flops, bytes, set_bytes, from_memory; null if not known."""
    product = pl.col("class").is_in(PRODUCTS)
    with_rates = (
        rows.select("device", "precision", "flops", "bytes", "set_bytes", "from_memory", product=product)
        .join(_rates(rows, peaks), on=["device", "precision", "product"], how="left", nulls_equal=True, maintain_order="left")
        .join(_memory(peaks), on="device", how="left", nulls_equal=True, maintain_order="left")
    )  # fmt: skip
    cached = (pl.col("set_bytes") <= pl.col("fits")) & ~pl.col("from_memory")
    computing = pl.col("flops") / pl.col("flops_per_ns")
    moving = pl.col("bytes") / pl.when(cached).then("l2").otherwise("hbm")
    known = moving.is_not_null() | (pl.col("product") & computing.is_not_null())
    by_flops = computing.fill_null(0) >= moving.fill_null(0)
    return with_rates.select(
        least_ns=pl.when(known).then(pl.max_horizontal(computing, moving)),
        bound=pl.when(known).then(
            pl.when(by_flops).then(pl.lit("flops")).when(cached).then(pl.lit("l2")).otherwise(pl.lit("hbm"))
        ),
    )


def _rates(rows: pl.DataFrame, peaks: dict[int | None, Peaks]) -> pl.DataFrame:
    distinct = rows.select("device", "precision", product=pl.col("class").is_in(PRODUCTS)).unique()
    table: list[tuple[Any, ...]] = []
    for device, precision, product in distinct.iter_rows():
        found = peaks.get(device)
        rate = _rate(found, precision or "unknown", product) if found is not None else None
        table.append((device, precision, product, rate / GIGA if rate else None))
    return pl.DataFrame(table, schema=_RATES, orient="row")


def _rate(found: Peaks, precision: str, product: bool) -> float | None:
    """Products of unknown format are held against the best there is, so that nothing is called lost that may not be."""
    if not product:
        return found.flops.get(precision if precision == "fp64" else "fp32")
    return found.own_flops_per_s(precision) or max(found.flops.values(), default=None)


def _memory(peaks: dict[int | None, Peaks]) -> pl.DataFrame:
    table = [
        (
            device,
            found.bytes_per_s / GIGA,
            (found.l2_bytes_per_s or L2_OF_MEMORY * found.bytes_per_s) / GIGA,
            CACHED_SHARE * found.l2_bytes,
        )
        for device, found in peaks.items()
    ]
    return pl.DataFrame(table, schema=_MEMORY, orient="row")
