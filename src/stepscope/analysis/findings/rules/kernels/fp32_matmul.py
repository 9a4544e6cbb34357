"""Matrix work in plain fp32 on a device that has tensor cores."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.promise import left_by_replay, of_kernels, shorten_kernels
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.solvers import solver_kernels
from stepscope.registers.calibration.kernels import (
    AUTOCAST_OTHERS_BEST,
    AUTOCAST_OTHERS_WORST,
    BF16_ATTENTION_BEST,
    BF16_ATTENTION_WORST,
    BF16_CONVOLUTION_BEST,
    BF16_CONVOLUTION_WORST,
    BF16_PRODUCT_BEST,
    BF16_PRODUCT_WORST,
    HALF_TENSOR_CAPABILITY,
    SHORTEST_PRODUCT_NS,
    TF32_PRODUCT_BEST,
    TF32_PRODUCT_WORST,
    UNKNOWN_TENSOR_CORES_BEST,
    UNKNOWN_TENSOR_CORES_WORST,
)
from stepscope.registers.policy.findings import (
    MAJORITY,
)
from stepscope.units import speedup


def find(case: Case) -> Finding | None:
    """Matrix work in plain fp32 on a device that has tensor cores."""
    if not _has_tensor_cores(case):
        return None
    products = _plain_products(case)
    found = of_kernels(
        case,
        RULE,
        pl.concat([_in_half_precision(case, products), _other_kernels(case, products)]),
        "is spent in fp32 matrix products and convolutions that tensor cores could do.",
        owned=products["event"],
    )
    return None if found is None else _with_tf32(case, found, products)


def _with_tf32(case: Case, found: Finding, products: pl.DataFrame) -> Finding:
    """The finding promises 16-bit products; TF32 changes no type and saves less."""
    peak = _peak_of_tf32(case)
    if not peak or not case.replay_fits:
        return found
    least, most = (_left(products, share * peak) for share in (TF32_PRODUCT_BEST, TF32_PRODUCT_WORST))
    faster = shorten_kernels(case, products.select("event", least=least, most=most))
    tf32, half = case.gain(left_by_replay(case, faster), code=RULE.code).speedup, found.speedup
    found.evidence = {**found.evidence, "tf32": _figures(tf32), "bf16": _figures(half)}
    found.detail += f" TF32: {speedup(tf32.low, tf32.high)}; bfloat16: {speedup(half.low, half.high)}."
    return found


def _figures(found: Interval) -> dict[str, float]:
    return {"low": found.low, "mid": found.mid, "high": found.high}


def _plain_products(case: Case) -> pl.DataFrame:
    """event, dur_ns, product, flops of all kernels of products and convolutions that are mostly done in plain fp32.

    A product is what one op launched: with tensor cores, the transforms and conversions around it go, too.
    """
    plain = (pl.col("precision") == "fp32") & ~pl.col("tensor_cores") & pl.col("eligible")
    rows = case.kernels.select(
        "event", "dur_ns", "step", name=pl.col("op").cast(pl.String), plain=plain.fill_null(False)
    )
    rows = rows.join(case.trace.kernels.select("event", "op"), on="event", how="left", maintain_order="left")
    # An instruction of a program; a command buffer holds many of them.
    one = pl.col("name").str.contains("conv") & ~pl.col("name").str.contains("command_buffer")
    by_name = pl.when(one).then(
        pl.concat_str([pl.col("name"), pl.col("step").cast(pl.String)], separator=" ")
    )
    alone = pl.format("kernel {}", "event")
    rows = rows.with_columns(product=pl.coalesce(pl.format("op {}", "op"), by_name, alone))
    share = (pl.col("dur_ns") * pl.col("plain")).sum() / pl.col("dur_ns").sum()
    rows = rows.filter(
        share.over("product") > MAJORITY, ~pl.col("event").is_in(solver_kernels(case).implode())
    )
    flops = case.ops.filter(pl.col("flops") > 0).select("event", "flops")
    of_op = rows.join(flops, left_on="op", right_on="event", how="left", maintain_order="left")["flops"]
    own = rows.join(flops, on="event", how="left", maintain_order="left")["flops"]
    # What a framework's op computes is known once for all its kernels, that of a program's instruction for each.
    known = rows.with_columns(of_op=of_op, own=own)
    return known.with_columns(flops=pl.coalesce(pl.col("of_op", "own").max().over("product")))


def _in_half_precision(case: Case, products: pl.DataFrame) -> pl.DataFrame:
    """event, least, most: what 16-bit numbers leave of each product, by its FLOPs where they are known."""
    peak = (case.peaks.flops_per_s("bf16") or case.peaks.flops_per_s("fp16")) if case.peaks else None
    if not peak:
        unknown = pl.lit(UNKNOWN_TENSOR_CORES_BEST), pl.lit(UNKNOWN_TENSOR_CORES_WORST)
        return products.select("event", least=unknown[0], most=unknown[1])
    convolves = pl.col("name").str.contains("(?i)conv").fill_null(False)
    best = pl.when(convolves).then(BF16_CONVOLUTION_BEST).otherwise(BF16_PRODUCT_BEST) * peak
    slow = (_peak_of_tf32(case) or peak) if case.trace.info.framework == "jax" else peak
    worst = pl.when(convolves).then(BF16_CONVOLUTION_WORST).otherwise(BF16_PRODUCT_WORST) * slow
    return products.select("event", least=_left(products, best), most=_left(products, worst))


def _peak_of_tf32(case: Case) -> float | None:
    """JAX's own default: products are in plain fp32 where a precision was asked for, and without it they are in TF32."""
    return case.peaks.flops_per_s("tf32") if case.peaks else None


def _left(products: pl.DataFrame, flops_per_s: float | pl.Expr) -> pl.Series:
    """What is left of each product at that rate; without FLOPs, as if it ran at half the peak of fp32 now."""
    total = pl.col("dur_ns").sum().over("product")
    known = pl.col("flops") / flops_per_s * 1e9
    typical = (known.sum() / total.filter(pl.col("flops").is_not_null()).sum()).fill_nan(None)
    share = pl.coalesce(known / total, typical, pl.lit(UNKNOWN_TENSOR_CORES_WORST))
    shortest = (SHORTEST_PRODUCT_NS / total).clip(upper_bound=1.0)
    return products.select(share.clip(lower_bound=shortest, upper_bound=1.0).alias("left")).to_series()


def _other_kernels(case: Case, products: pl.DataFrame) -> pl.DataFrame:
    """event, least, most of the kernels around them: attention in 16 bits; half the bytes, and casts, in the others."""
    others = case.compute.kernels.filter(~pl.col("event").is_in(products["event"].implode()))
    peak = case.peaks.flops_per_s("bf16") if case.peaks else None
    attends = (pl.col("class") == "attention") & (pl.col("flops") > 0) & (pl.col("time_ns") > 0)
    ideal = pl.col("flops") / (peak or float("inf")) * 1e9 / pl.col("time_ns")

    def left(attention: float, other: float) -> pl.Expr:
        fused = (ideal / attention).clip(upper_bound=1.0)
        return pl.when(attends & pl.lit(peak is not None)).then(fused).otherwise(other)

    return others.select(
        "event",
        least=left(BF16_ATTENTION_BEST, AUTOCAST_OTHERS_BEST),
        most=left(BF16_ATTENTION_WORST, AUTOCAST_OTHERS_WORST),
    )


def _has_tensor_cores(case: Case) -> bool:
    """V100 and T4 have them for fp16 alone, the smallest of their generation (GTX 16) not at all."""
    capabilities = [
        device.get("computeMajor") or device.get("compute_cap_major") or 0
        for device in case.trace.info.devices
        if "GTX 16" not in str(device.get("name"))
    ]
    return any(isinstance(major, int) and major >= HALF_TENSOR_CAPABILITY for major in capabilities)


RULE: Rule[Case] = Rule(
    code="fp32-matmul",
    title="Matrix products run in fp32, without tensor cores",
    turn=190,
    page="kernels",
    owns="all kernels of products and convolutions that are mostly in plain fp32, on a device with tensor cores, but for those inside of decompositions and solvers",
    change="products at 62 to 78 % of the 16-bit peak, convolutions at 30 to 55 %, attention at 30 to 55 %, other kernels 0.85 to 1.25 times as long (at worst, under JAX, at these shares of the peak of TF32, its default); with TF32 as a second line, at 62 to 82 % of its peak",
    fix={
        "pytorch": "Let tensor cores do it: torch.set_float32_matmul_precision('high') for TF32, or torch.autocast('cuda', dtype=torch.bfloat16).",
        "tensorflow": "tf.keras.mixed_precision.set_global_policy('mixed_bfloat16'), or tf.config.experimental.enable_tensor_float_32_execution(True).",
        "jax": "jax.config.update('jax_default_matmul_precision', 'tensorfloat32'), or compute in bfloat16.",
        ANY: "Use TF32 or bfloat16 for matrix products and convolutions.",
    },
    find=find,
)
