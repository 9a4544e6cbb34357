"""Matrix work in plain fp32 on a device that has tensor cores."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import of_kernels
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.registers.calibration.kernels import (
    BETWEEN_TF32_AND_BF16,
    HALF_TENSOR_CAPABILITY,
    PRODUCT_AT_BEST,
    TENSOR_CORES_OF_PEAK_RATIO,
    TF32_OF_PEAK,
    UNKNOWN_TENSOR_CORE_FACTOR,
)
from stepscope.registers.policy.findings import (
    MAJORITY,
)


def find(case: Case) -> Finding | None:
    """Matrix work in plain fp32 on a device that has tensor cores."""
    if not _has_tensor_cores(case):
        return None
    chosen = _on_tensor_cores(case, _plain_products(case))
    return of_kernels(
        case,
        RULE,
        chosen,
        "is spent in fp32 matrix products and convolutions that tensor cores could do.",
    )


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
    rows = rows.filter(share.over("product") > MAJORITY)
    flops = case.ops.filter(pl.col("flops") > 0).select("event", "flops")
    of_op = rows.join(flops, left_on="op", right_on="event", how="left", maintain_order="left")["flops"]
    own = rows.join(flops, on="event", how="left", maintain_order="left")["flops"]
    # What a framework's op computes is known once for all its kernels, that of a program's instruction for each.
    return rows.with_columns(
        flops=pl.coalesce(pl.lit(of_op).max().over("product"), pl.lit(own).max().over("product"))
    )


def _on_tensor_cores(case: Case, kernels: pl.DataFrame) -> pl.DataFrame:
    """event, factor: what is left of each product, by the sums it must do where they are known, else by the peaks."""
    ratio = _tensor_core_factor(case)
    fast = _fast_peak(case)
    if not fast:
        return kernels.select("event", factor=pl.lit(ratio))
    ideal = pl.col("flops") / (TF32_OF_PEAK * fast) * 1e9 / pl.col("dur_ns").sum().over("product")
    factor = ideal.fill_null(ratio).clip(PRODUCT_AT_BEST * ratio, 1.0)
    return kernels.select("event", factor=factor * BETWEEN_TF32_AND_BF16)


def _fast_peak(case: Case) -> float | None:
    return (case.peaks.flops_per_s("tf32") or case.peaks.flops_per_s("fp16")) if case.peaks else None


def _tensor_core_factor(case: Case) -> float:
    """What is left of a product's time in TF32."""
    plain = case.peaks.flops_per_s("fp32") if case.peaks else None
    fast = _fast_peak(case)
    return (
        min(1.0, plain / fast / TENSOR_CORES_OF_PEAK_RATIO) if plain and fast else UNKNOWN_TENSOR_CORE_FACTOR
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
    owns="all kernels of products and convolutions that are mostly in plain fp32, on a device with tensor cores",
    change="their sums at 72 % of the TF32 peak, at least 60 % of what the ratio of the peaks promises, and 10 % less, since bfloat16 saves more",
    fix={
        "pytorch": "Let tensor cores do it: torch.set_float32_matmul_precision('high') for TF32, or torch.autocast('cuda', dtype=torch.bfloat16).",
        "tensorflow": "tf.keras.mixed_precision.set_global_policy('mixed_bfloat16'), or tf.config.experimental.enable_tensor_float_32_execution(True).",
        "jax": "jax.config.update('jax_default_matmul_precision', 'tensorfloat32'), or compute in bfloat16.",
        ANY: "Use TF32 or bfloat16 for matrix products and convolutions.",
    },
    find=find,
)
