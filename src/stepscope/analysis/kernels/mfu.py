"""How much of a device's peak the steps used: model FLOPs utilisation.

mfu = sum over number formats of (FLOPs of matrix products in that format / best dense peak for them) / time of the steps

The best peak is that of 16-bit numbers, or of the format itself where that is higher; `own_precision` is the same against
the peak of the format that was used. fp32 near its own peak is far from what the device can do.

Matrix products are the ops with a formula (`flops`) that launched a kernel which is one, and the instructions of compiled
programs that are one; on a TPU, whose file gives the FLOPs of all instructions and its own peak, all of them count, as in XProf; their format is that of the kernel that took longest. Work that is done twice (recomputed activations) counts twice, since it was done. Where formula
or peak is known for less than 90 % of the time of such kernels, nothing is claimed.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.kernels.device_peaks import listed_peaks
from stepscope.analysis.xla.file_work import instruction_facts
from stepscope.lazy import dataclass
from stepscope.registers.policy.findings import KNOWN_ENOUGH
from stepscope.trace.frames import conform
from stepscope.trace.lookup import rows_by_event
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

PRODUCTS = {"device": pl.Int32, "precision": pl.String, "flops": pl.Int64, "ns": pl.Int64}


def matrix_products(trace: Trace, op_calls: pl.DataFrame, kernel_calls: pl.DataFrame) -> pl.DataFrame:
    """device, precision, flops, ns of the matrix products in the steps; flops are null where no formula fits."""
    measured = pl.col("event").is_in(instruction_facts(trace)["event"].implode())
    kernels = kernel_calls.filter(pl.col("eligible").fill_null(False) | measured)
    # The one peak that such a file gives is that of bf16.
    kernels = kernels.with_columns(precision=pl.when(measured).then(pl.lit("bf16")).otherwise("precision"))
    owner = _owners(trace, op_calls, kernels["event"])
    mine = kernels.select("device", "precision", "dur_ns").with_columns(owner=owner)
    longest = pl.col("precision").get(pl.col("dur_ns").arg_max())
    by_op = (
        mine.filter(pl.col("owner").is_not_null())
        .group_by("owner", "device", maintain_order=True)
        .agg(longest, pl.col("dur_ns").sum().alias("ns"))
    )
    row = rows_by_event(op_calls["event"], len(trace.events)).gather(by_op["owner"])
    by_op = by_op.with_columns(flops=op_calls["flops"].gather(row))
    without = mine.filter(pl.col("owner").is_null()).select("device", "precision", flops=None, ns="dur_ns")
    return pl.concat([conform(by_op, PRODUCTS), conform(without, PRODUCTS)])


def _owners(trace: Trace, op_calls: pl.DataFrame, kernel: pl.Series) -> pl.Series:
    """The op with a formula that each kernel belongs to."""
    events = trace.events
    with_formula = op_calls.filter(pl.col("flops").is_not_null())["event"]
    has_formula = pl.repeat(False, len(events), eager=True).scatter(with_formula, True)
    op = trace.kernels["op"].gather(rows_by_event(trace.kernels["event"], len(events)).gather(kernel))
    above = ancestors(events, has_formula).gather(op)
    found = pl.select(
        pl.when(has_formula.gather(kernel))  # a compiled program's kernel is its own op
        .then(kernel)
        .when(has_formula.gather(op).fill_null(False))
        .then(op)
        .otherwise(above)
    )
    return found.to_series().alias("owner")


@dataclass(frozen=True)
class Utilisation:
    """Shares of a device's peak: of the best that the work could have, and of the one in its own format."""

    best: float
    own_precision: float


def utilisation(trace: Trace, products: pl.DataFrame, window_ns: int) -> Utilisation | None:
    """Both shares; None where formulas or peaks are not known for enough of the products."""
    total = int(products["ns"].sum())
    if not total or not window_ns:
        return None
    known = {device.get("id"): listed_peaks(device) for device in trace.info.devices}
    at_best, at_own, counted = 0.0, 0.0, 0
    grouped = products.drop_nulls("flops").group_by("device", "precision").agg(pl.col("flops", "ns").sum())
    for device, precision, flops, ns in grouped.iter_rows():
        found = known.get(device)
        own = found.own_flops_per_s(precision) if found is not None else None
        best = found.best_flops_per_s(precision) if found is not None else None
        if own and best:
            at_own += flops / own
            at_best += flops / best
            counted += ns
    if counted < KNOWN_ENOUGH * total:
        return None
    best, own = at_best * 1e9 / window_ns, at_own * 1e9 / window_ns
    return Utilisation(best, own) if own <= 1 else None  # beyond the peak: it is not that of this device
