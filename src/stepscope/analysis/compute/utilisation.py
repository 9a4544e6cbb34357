"""How long the FLOPs of matrix products would take at the best dense peak: the numerator of MFU and HFU."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.compute.account import ComputeAccount
from stepscope.analysis.compute.classes import PRODUCTS
from stepscope.lazy import dataclass
from stepscope.registers.calibration.devices import GIGA
from stepscope.registers.policy.findings import KNOWN_ENOUGH


@dataclass(frozen=True)
class Used:
    """Time at the peak of all products, and of those that are recomputed, against the time of the steps."""

    at_peak_ns: float
    again_ns: float
    window_ns: int
    is_known: bool


def flops_used(found: ComputeAccount, window_ns: int) -> Used:
    """Known where the FLOPs and the peak of at least nine tenths of the products' time are."""
    again = pl.col("event").is_in(found.repeated["event"].implode())
    products = found.kernels.filter(pl.col("class").is_in(PRODUCTS))
    grouped = products.group_by("device", "precision", again=again).agg(
        pl.col("flops").sum(),
        time=pl.col("time_ns").sum(),
        known=pl.col("time_ns").filter(pl.col("flops").is_not_null()).sum(),
    )
    at_peak, repeated, counted = 0.0, 0.0, 0
    for device, precision, is_again, flops, _, known in grouped.iter_rows():
        peaks = found.peaks.get(device)
        best = peaks.best_flops_per_s(precision or "unknown") if peaks else None
        if best:
            at_peak += flops / best * GIGA
            repeated += flops / best * GIGA if is_again else 0.0
            counted += known
    total = int(products["time_ns"].sum())
    is_known = bool(total) and window_ns > 0 and counted >= KNOWN_ENOUGH * total
    return Used(at_peak, repeated, window_ns, is_known)
