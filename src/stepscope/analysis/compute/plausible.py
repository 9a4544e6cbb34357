"""Work that no device could have done in the time: there the formula of the op does not hold, and its work is not known.

An op of a library may be given a whole table, or a whole cache, of which it touches a few rows.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.kernels.device_peaks import Peaks
from stepscope.registers.calibration.devices import GIGA
from stepscope.registers.calibration.kernels import L2_OF_MEMORY
from stepscope.registers.calibration.products import IMPOSSIBLE_RATE
from stepscope.registers.policy.findings import MAJORITY
from stepscope.trace.schema import Columns

_WORK = ("flops", "bytes", "set_bytes")
_TENSORS = ("reads", "writes")
_FASTEST: Columns = {"device": pl.Int32, "flops_per_ns": pl.Float64, "bytes_per_ns": pl.Float64}


def without_impossible(rows: pl.DataFrame, peaks: dict[int | None, Peaks]) -> pl.DataFrame:
    """The kernels (device, op, call, dur_ns and their work) without the work of calls that were too fast for it.

    If these are most of what an op does, the work of its other calls is not known either.
    """
    fastest = rows.select("device").join(
        _fastest(peaks), on="device", how="left", nulls_equal=True, maintain_order="left"
    )
    called = rows.select("device", "op", "dur_ns", "call", "flops", "bytes").hstack(fastest.drop("device"))
    least = pl.max_horizontal(
        pl.col("flops").sum().over("call") / pl.col("flops_per_ns"),
        pl.col("bytes").sum().over("call") / pl.col("bytes_per_ns"),
    )
    time = pl.col("dur_ns").sum().over("call")
    judged = called.with_columns(wrong=((time > 0) & (least > IMPOSSIBLE_RATE * time)).fill_null(False))
    if not judged["wrong"].any():
        return rows
    lost = pl.when("wrong").then("dur_ns").otherwise(0).sum().over("device", "op")
    mostly = pl.col("op").is_not_null() & (lost > MAJORITY * pl.col("dur_ns").sum().over("device", "op"))
    kept = ~judged.select(pl.col("wrong") | mostly).to_series()
    none = pl.lit([], dtype=pl.List(pl.Int64))
    return rows.with_columns(
        *(pl.when(kept).then(name).alias(name) for name in _WORK),
        *(pl.when(kept).then(name).otherwise(none).alias(name) for name in _TENSORS),
    )


def _fastest(peaks: dict[int | None, Peaks]) -> pl.DataFrame:
    """The best rate in any format, and that of the fastest memory."""
    table = [
        (
            device,
            max(found.flops.values()) / GIGA if found.flops else None,
            max(found.bytes_per_s, found.l2_bytes_per_s or L2_OF_MEMORY * found.bytes_per_s) / GIGA,
        )
        for device, found in peaks.items()
    ]
    return pl.DataFrame(table, schema=_FASTEST, orient="row")
