"""Matrix work in TF32, where 16-bit numbers would do it in half the time and with half the traffic."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import of_kernels
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.solvers import solver_kernels
from stepscope.registers.calibration.products import (
    AUTOCAST_OTHERS_BEST,
    AUTOCAST_OTHERS_WORST,
    BF16_CONVOLUTION_BEST,
    BF16_CONVOLUTION_WORST,
    BF16_PRODUCT_BEST,
    BF16_PRODUCT_WORST,
    HALF_TRAFFIC_BEST,
    HALF_TRAFFIC_WORST,
    SHORTEST_PRODUCT_NS,
    UNKNOWN_HALF,
)
from stepscope.registers.policy.findings import TF32_WORK, UNSURE_PRECISION


def find(case: Case) -> Finding | None:
    """Products and convolutions in TF32 that are a large part of the step."""
    peak = case.peaks.flops_per_s("bf16") if case.peaks else None
    products = _tf32_products(case)
    if not peak or products.is_empty() or not _matter(case, products):
        return None
    memory = case.peaks.bytes_per_s if case.peaks else None
    chosen = pl.concat([_in_half_precision(products, peak, memory), _others(case, products)])
    return of_kernels(
        case,
        RULE,
        chosen,
        "is spent in matrix products and convolutions in TF32, which 16-bit numbers do at twice the rate.",
        owned=products["event"],
    )


def _matter(case: Case, products: pl.DataFrame) -> bool:
    """Whether they are enough of the step, those that another finding owns included: the change is one for all of them."""
    mine = case.slices.filter(
        pl.col("part") == "compute", pl.col("named_by").is_in(products["event"].implode())
    )
    return case.per_step(mine) >= TF32_WORK * case.step_ns


def _tf32_products(case: Case) -> pl.DataFrame:
    return case.compute.kernels.filter(
        pl.col("class").is_in(["matmul", "convolution", "attention"]),
        pl.col("precision") == "tf32",
        pl.col("device").eq_missing(case.device),
        pl.col("time_ns") > 0,
        ~pl.col("event").is_in(solver_kernels(case).implode()),
    )


def _in_half_precision(products: pl.DataFrame, peak: float, memory: float | None) -> pl.DataFrame:
    """event, least, most: at the rates that 16-bit products reach; never below half without their FLOPs.

    Small matrices in large batches, as those of attention, are bound by the memory: half the bytes take half the time.
    """
    convolves = pl.col("class") == "convolution"
    shortest = (SHORTEST_PRODUCT_NS / pl.col("time_ns")).clip(upper_bound=1.0)

    moved = pl.col("bytes") / memory * 1e9 / pl.col("time_ns") if memory else pl.lit(0.0)

    def left(product: float, convolution: float, traffic: float) -> pl.Expr:
        rate = pl.when(convolves).then(convolution).otherwise(product) * peak
        share = (pl.col("flops") / rate * 1e9 / pl.col("time_ns")).fill_null(UNKNOWN_HALF)
        least = pl.max_horizontal(shortest, (traffic * moved).fill_null(0.0).clip(upper_bound=1.0))
        return share.clip(lower_bound=least, upper_bound=1.0)

    return products.select(
        "event",
        least=left(BF16_PRODUCT_BEST, BF16_CONVOLUTION_BEST, HALF_TRAFFIC_BEST),
        most=left(BF16_PRODUCT_WORST, BF16_CONVOLUTION_WORST, HALF_TRAFFIC_WORST),
    )


def _others(case: Case, products: pl.DataFrame) -> pl.DataFrame:
    """event, least, most of the other kernels: half the bytes where the whole program changes its type, casts where it does not."""
    others = case.kernels.filter(~pl.col("event").is_in(products["event"].implode()))
    casts = case.trace.info.framework == "pytorch"  # autocast keeps fp32 weights and casts them
    best, worst = (
        (AUTOCAST_OTHERS_BEST, AUTOCAST_OTHERS_WORST) if casts else (HALF_TRAFFIC_BEST, HALF_TRAFFIC_WORST)
    )
    return others.select("event", least=pl.lit(best), most=pl.lit(worst))


RULE: Rule[Case] = Rule(
    code="mixed-precision",
    title="Matrix products run in TF32 instead of 16 bits",
    turn=191,
    page="kernels",
    certainty=UNSURE_PRECISION,
    owns="products, convolutions and attention in TF32, from 30 % of the step",
    change="products at 62 to 78 % of the 16-bit peak, convolutions at 30 to 55 %, neither faster than the memory moves 55 % of their bytes at best and all at worst; other kernels take 55 to 100 % of their time, under PyTorch's autocast 85 to 125 %",
    fix={
        "pytorch": "Compute in bfloat16: torch.autocast('cuda', dtype=torch.bfloat16), or model.to(torch.bfloat16) for inference.",
        "tensorflow": "Compute in bfloat16: tf.keras.mixed_precision.set_global_policy('mixed_bfloat16').",
        "jax": "Compute in bfloat16. If the model is meant to, look for what promotes it to float32: NumPy scalars (np.sqrt(d) instead of d ** 0.5), float32 constants, masks or biases.",
        ANY: "Compute in bfloat16.",
    },
    find=find,
    needs_device=True,
)
