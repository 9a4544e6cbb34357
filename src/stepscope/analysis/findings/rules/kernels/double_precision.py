"""Kernels that compute in float64."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.compute.classes import PRODUCTS
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import of_kernels
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.registers.calibration.kernels import TF32_PRODUCT_WORST
from stepscope.registers.policy.findings import (
    DOUBLE_TO_SINGLE_LEAST,
    DOUBLE_TO_SINGLE_MOST,
    UNSURE_PRECISION,
)


def find(case: Case) -> Finding | None:
    """Models hardly ever need 64 bits; NumPy makes them by default."""
    kernels = case.compute.kernels.filter(pl.col("precision") == "fp64", pl.col("time_ns") > 0)
    if kernels.is_empty():
        return None
    single, tensor = (_peak(case, name) for name in ("fp32", "tf32"))
    product = pl.col("class").is_in(list(PRODUCTS)) & (pl.col("flops") > 0)
    chosen = kernels.select(
        "event",
        least=pl.when(product)
        .then(_share(tensor or single, TF32_PRODUCT_WORST))
        .otherwise(DOUBLE_TO_SINGLE_LEAST),
        most=pl.when(product).then(_share(single, TF32_PRODUCT_WORST)).otherwise(DOUBLE_TO_SINGLE_MOST),
    )
    return of_kernels(case, RULE, chosen, "is spent in kernels that compute in float64.")


def _peak(case: Case, precision: str) -> float | None:
    return case.peaks.flops_per_s(precision) if case.peaks else None


def _share(flops_per_s: float | None, efficiency: float) -> pl.Expr:
    """What is left of a product at some share of the device's peak; where that is not known, as of any other kernel."""
    if not flops_per_s:
        return pl.lit(DOUBLE_TO_SINGLE_MOST)
    return (pl.col("flops") / (efficiency * flops_per_s) * 1e9 / pl.col("time_ns")).clip(upper_bound=1.0)


RULE: Rule[Case] = Rule(
    code="double-precision",
    title="Kernels compute in float64",
    turn=172,
    page="kernels",
    certainty=UNSURE_PRECISION,
    owns="kernels whose inputs are float64",
    change="products run at the speed of fp32, at most of TF32; the other kernels take 45 to 60 % of their time",
    fix={
        "pytorch": "Use float32: torch.from_numpy(x).float(), model.float(), dtype=np.float32 where arrays are made (NumPy makes float64), and no torch.set_default_dtype(torch.float64).",
        "tensorflow": "Use float32: tf.cast(x, tf.float32), dtype=np.float32 where arrays are made (NumPy makes float64), and tf.keras.backend.set_floatx('float32').",
        "jax": "Use float32: without jax_enable_x64, and dtype=jnp.float32 where arrays are made.",
        ANY: "Use float32.",
    },
    find=find,
)
