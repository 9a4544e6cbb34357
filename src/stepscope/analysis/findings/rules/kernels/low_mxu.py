"""Matrix products that use little of a TPU's matrix unit."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.compute.classes import PRODUCTS
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import of_kernels
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.registers.policy.device_findings import MXU_REACHED_LEAST, MXU_REACHED_MOST
from stepscope.registers.policy.findings import UNSURE_KERNELS
from stepscope.units import percent


def find(case: Case) -> Finding | None:
    """Products of the case's TPU whose FLOPs take less than their time allows at a usual share of the peak."""
    if not case.is_tpu or case.peaks is None:
        return None
    best = case.peaks.best_flops_per_s("bf16")
    products = case.compute.kernels.filter(
        pl.col("class").is_in(PRODUCTS), pl.col("flops") > 0, pl.col("time_ns") > 0
    )
    if not best or products.is_empty():
        return None
    of_peak = pl.col("flops") / pl.col("time_ns") * 1e9 / best
    # What reading and writing memory takes is not the unit's fault.
    in_memory = pl.col("bytes") / case.peaks.bytes_per_s * 1e9 / pl.col("time_ns")
    rows = products.with_columns(of_peak=of_peak, in_memory=in_memory.fill_null(0.0))
    low = rows.filter(pl.col("of_peak") < MXU_REACHED_LEAST, pl.col("in_memory") < MXU_REACHED_LEAST)
    chosen = low.select(
        "event",
        least=pl.max_horizontal(pl.col("of_peak") / MXU_REACHED_MOST, "in_memory").clip(upper_bound=1.0),
        most=pl.max_horizontal(pl.col("of_peak") / MXU_REACHED_LEAST, "in_memory").clip(upper_bound=1.0),
    )
    total = max(1, int(low["time_ns"].sum()))
    reached = float(low["flops"].sum()) / total * 1e9 / best
    why = f"is spent in matrix products that reach {percent(reached)} of the matrix unit's peak."
    return of_kernels(case, RULE, chosen, why, evidence={"of_peak_share": round(reached, 4)})


RULE: Rule[Case] = Rule(
    code="low-mxu",
    title="Matrix products use little of the matrix unit",
    turn=193,
    page="kernels",
    owns="products on a TPU that run below 40 % of the peak and are not memory-bound",
    change="they run at 40 to 70 % of the peak",
    certainty=UNSURE_KERNELS,
    fix={
        ANY: "Give the matrix unit full tiles: sides that are multiples of 128 (256 from v6e on) and of 8 in the other dimension, bfloat16 operands, larger batches or fused projections instead of several narrow ones.",
    },
    find=find,
    needs_device=True,
)
