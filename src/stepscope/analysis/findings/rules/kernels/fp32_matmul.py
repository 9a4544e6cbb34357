"""Matrix work in plain fp32 on a device that has tensor cores."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.promise import least_left, left_by_replay, of_kernels, shorten_kernels
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.solvers import solver_kernels
from stepscope.analysis.findings.spread import OF_PRODUCTS, Spread
from stepscope.analysis.serving.workload import INFERENCE
from stepscope.registers.calibration.kernels import (
    HALF_TENSOR_CAPABILITY,
)
from stepscope.registers.calibration.products import (
    AUTOCAST_OTHERS_BEST,
    AUTOCAST_OTHERS_WORST,
    BF16_ATTENTION_BEST,
    BF16_ATTENTION_WORST,
    BF16_CONVOLUTION_BEST,
    BF16_CONVOLUTION_WORST,
    BF16_PRODUCT_BEST,
    BF16_PRODUCT_WORST,
    K_MAJOR_TF32_CAPABILITY,
    PRODUCT_TRAFFIC_BEST,
    PRODUCT_TRAFFIC_WORST,
    SHORTEST_PRODUCT_NS,
    TF32_CONVOLUTION_WORST,
    TF32_NT_BEST,
    TF32_NT_WORST,
    TF32_PRODUCT_BEST,
    TF32_PRODUCT_WORST,
    UNKNOWN_TENSOR_CORES_BEST,
    UNKNOWN_TENSOR_CORES_WORST,
)
from stepscope.registers.policy.findings import MAJORITY
from stepscope.units import speedup

_CONVOLVES = pl.col("name").str.contains("(?i)conv").fill_null(False)
# Of the operands, as the names of cuBLAS's and CUTLASS's kernels have it.
_LAYOUT = r"_(tn|nn|nt|tt)(?:_|$)"
# Products in plain fp32 were asked for there: without that, they are done in TF32.
_TF32_BY_DEFAULT = ("jax", "tensorflow")
_NOTHING = speedup(Interval().low, Interval().high)


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
        spread=_spread_of(case, products),
    )
    return None if found is None else _with_tf32(case, found, products)


def _with_tf32(case: Case, found: Finding, products: pl.DataFrame) -> Finding:
    """The finding is of 16-bit products so far; TF32 changes no type, saves less, and is as good a fix."""
    peak = _peak_of_tf32(case)
    if not peak or not case.replay_fits:
        return found
    best, worst = (share * peak for share in _reached_in_tf32(case))
    least, most = (
        _left(case, products, best, PRODUCT_TRAFFIC_BEST),
        _left(case, products, worst, PRODUCT_TRAFFIC_WORST),
    )
    faster = shorten_kernels(case, products.select("event", least=least, most=most))
    spread = _spread_of(case, products)
    gain = case.gain(
        left_by_replay(case, faster), code=RULE.code, work=least_left(case, faster), spread=spread
    )
    tf32, half = gain.speedup, found.speedup
    found.evidence = {**found.evidence, "tf32": _figures(tf32), "bf16": _figures(half)}
    figures = speedup(tf32.low, tf32.high), speedup(half.low, half.high)
    if set(figures) != {_NOTHING}:
        found.detail += " TF32: {}; bfloat16: {}.".format(*figures)
    either = _choose_fix(case, tf32, half)
    found.speedup = either(tf32, half)
    if gain.left_ns and found.left_ns_per_step:
        left = either(gain.left_ns, found.left_ns_per_step)
        found.left_ns_per_step = Interval(round(left.low), round(left.mid), round(left.high))
        found.saves_ns_per_step = int(case.saved_of_ns - left.mid)
    return found


def _spread_of(case: Case, products: pl.DataFrame) -> Spread | None:
    """Products reach what they are expected to; convolutions, whose algorithm changes with the format, may be far better."""
    convolutions = int(products.filter(_CONVOLVES)["dur_ns"].sum())
    few = convolutions <= MAJORITY * int(products["dur_ns"].sum())
    return OF_PRODUCTS if few and case.device_decides else None


def _choose_fix(case: Case, tf32: Interval, half: Interval) -> Callable[[Interval, Interval], Interval]:
    """Which of two intervals, for TF32 and for 16 bits, is promised.

    Inference has neither gradients nor sums of small updates, which training keeps in 32 bits: weights are loaded in 16 bits, as the
    advice says first, if TF32 brings less for sure because attention and the bytes of all tensors stay.
    """
    if case.trace.info.framework in _TF32_BY_DEFAULT:
        return _first
    return _second if case.workload == INFERENCE and tf32.high < half.low else _either


def _first(one: Interval, _: Interval) -> Interval:
    """The fix that gives up what was asked for; another type is one more change."""
    return one


def _second(_: Interval, other: Interval) -> Interval:
    return other


def _either(one: Interval, other: Interval) -> Interval:
    """Which of two fixes people choose is not in doubt but up to them: the promise is for both."""
    mid = round((one.mid * other.mid) ** 0.5, 3)
    return Interval(min(one.low, other.low), mid, max(one.high, other.high))


def _figures(found: Interval) -> dict[str, float]:
    return {"low": found.low, "mid": found.mid, "high": found.high}


def _reached_in_tf32(case: Case) -> tuple[pl.Expr, pl.Expr]:
    """The shares of the peak that a product reaches at best and at worst.

    Hopper's tensor cores read TF32 operands only if they are K-major. Both are in a linear layer's forward pass ("tn" in the names
    of kernels), one of them for the gradient of its input ("nn"), none for that of its weight ("nt"), which takes longer.
    """
    hopper = any(major == K_MAJOR_TF32_CAPABILITY for major in _capabilities(case))
    none_k_major = pl.lit(hopper) & (pl.col("layout") == "nt").fill_null(False) & ~_CONVOLVES
    slow = pl.when(_CONVOLVES).then(TF32_CONVOLUTION_WORST).otherwise(TF32_PRODUCT_WORST)
    best = pl.when(none_k_major).then(TF32_NT_BEST).otherwise(TF32_PRODUCT_BEST)
    return best, pl.when(none_k_major).then(TF32_NT_WORST).otherwise(slow)


def _plain_products(case: Case) -> pl.DataFrame:
    """event, dur_ns, product, flops, bytes, layout of all kernels of products and convolutions that are mostly done in plain fp32.

    A product is what one op launched: with tensor cores, the transforms and conversions around it go, too.
    """
    plain = (pl.col("precision") == "fp32") & ~pl.col("tensor_cores") & pl.col("eligible")
    rows = case.kernels.select(
        "event",
        "dur_ns",
        "step",
        name=pl.col("op").cast(pl.String),
        plain=plain.fill_null(False),
        layout=pl.col("name").cast(pl.String).str.extract(_LAYOUT),
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
    work = case.ops.filter(pl.col("flops") > 0).select("event", "flops", "bytes")
    of_op = rows.select("op").join(work, left_on="op", right_on="event", how="left", maintain_order="left")
    own = rows.select("event").join(work, on="event", how="left", maintain_order="left")
    # What a framework's op computes is known once for all its kernels, that of a program's instruction for each.
    known = rows.hstack(of_op.select(of_op="flops", of_op_bytes="bytes"))
    known = known.hstack(own.select(own="flops", own_bytes="bytes"))
    return known.with_columns(
        flops=pl.coalesce(pl.col("of_op", "own").max().over("product")),
        bytes=pl.coalesce(pl.col("of_op_bytes", "own_bytes").max().over("product")),
        layout=pl.col("layout").drop_nulls().first().over("product"),
    )


def _in_half_precision(case: Case, products: pl.DataFrame) -> pl.DataFrame:
    """event, least, most: what 16-bit numbers leave of each product, by its FLOPs where they are known."""
    peak = (case.peaks.flops_per_s("bf16") or case.peaks.flops_per_s("fp16")) if case.peaks else None
    if not peak:
        unknown = pl.lit(UNKNOWN_TENSOR_CORES_BEST), pl.lit(UNKNOWN_TENSOR_CORES_WORST)
        return products.select("event", least=unknown[0], most=unknown[1])
    best = pl.when(_CONVOLVES).then(BF16_CONVOLUTION_BEST).otherwise(BF16_PRODUCT_BEST) * peak
    worst = pl.when(_CONVOLVES).then(BF16_CONVOLUTION_WORST).otherwise(BF16_PRODUCT_WORST) * peak
    halved = products.with_columns(pl.col("bytes") / 2)
    return products.select(
        "event",
        least=_left(case, halved, best, PRODUCT_TRAFFIC_BEST),
        most=_left(case, halved, worst, PRODUCT_TRAFFIC_WORST),
    )


def _peak_of_tf32(case: Case) -> float | None:
    return case.peaks.flops_per_s("tf32") if case.peaks else None


def _left(case: Case, products: pl.DataFrame, flops_per_s: pl.Expr, bandwidth: float) -> pl.Series:
    """What is left of each product at that rate, and no less than its bytes need at that share of the memory's bandwidth.

    Without FLOPs it is what is left of the others, or as if it ran at half the peak of fp32 now.
    """
    total = pl.col("dur_ns").sum().over("product")
    bytes_per_s = (case.peaks.bytes_per_s if case.peaks else None) or float("inf")
    moved = (pl.col("bytes") / (bandwidth * bytes_per_s)).fill_null(0.0)
    known = pl.max_horizontal(pl.col("flops") / flops_per_s, moved) * 1e9
    known = pl.when(pl.col("flops").is_not_null()).then(known)
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
    return any(major >= HALF_TENSOR_CAPABILITY for major in _capabilities(case))


def _capabilities(case: Case) -> list[int]:
    """The major compute capability of each device."""
    found = [
        device.get("computeMajor") or device.get("compute_cap_major") or 0
        for device in case.trace.info.devices
        if "GTX 16" not in str(device.get("name"))
    ]
    return [major for major in found if isinstance(major, int)]


RULE: Rule[Case] = Rule(
    code="fp32-matmul",
    title="Matrix products run in fp32, without tensor cores",
    turn=190,
    page="kernels",
    owns="all kernels of products and convolutions that are mostly in plain fp32, on a device with tensor cores, except inside decompositions and solvers",
    change="products at 62 to 78 % of the 16-bit peak, convolutions at 30 to 55 %, attention at 30 to 55 %, other kernels 0.85 to 1.25 times as long; or all products in TF32, at 62 to 82 % of its peak (weight gradients on Hopper at 39 to 53 %, convolutions at 50 to 82 %); none faster than its bytes at 70 to 88 % of memory bandwidth. The promise covers both fixes; in inference, 16 bits alone if TF32 at best brings less than they do at worst; in JAX and TensorFlow, where products are in TF32 unless more precision is asked for, TF32 alone",
    fix={
        "pytorch": "Let tensor cores do it: torch.set_float32_matmul_precision('high') for TF32, or torch.autocast('cuda', dtype=torch.bfloat16).",
        "tensorflow": "Let tensor cores do it: tf.config.experimental.enable_tensor_float_32_execution(True); more is gained with tf.keras.mixed_precision.set_global_policy('mixed_bfloat16').",
        "jax": "Drop precision=HIGHEST, or jax.config.update('jax_default_matmul_precision', 'tensorfloat32'); more is gained in bfloat16.",
        ANY: "Use TF32 or bfloat16 for matrix products and convolutions.",
    },
    find=find,
    needs_device=True,
)
