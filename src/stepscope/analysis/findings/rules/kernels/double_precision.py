"""Kernels that compute in float64."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.analysis.compute.classes import PRODUCTS
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.programs.host_ops import of_host_ops
from stepscope.analysis.findings.programs.host_programs import going_share, host_programs, of_instructions
from stepscope.analysis.findings.promise import of_kernels, timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.serving.workload import TRAINING
from stepscope.analysis.xla.hlo_module import Instruction, Module
from stepscope.analysis.xla.instruction_cost import FORMATS
from stepscope.analysis.xla.repeats.forward_again import GRADIENT
from stepscope.registers.calibration.kernels import XLA_DOUBLE_TO_SINGLE_LEAST
from stepscope.registers.calibration.products import (
    TF32_PRODUCT_WORST,
)
from stepscope.registers.policy.compute import ALSO_IN_SINGLE
from stepscope.registers.policy.findings import (
    DOUBLE_TO_SINGLE_LEAST,
    DOUBLE_TO_SINGLE_MOST,
    UNSURE_PRECISION,
    WORTH_A_FINDING,
)

# Layers of neural networks; a solver or a simulation has none of them.
_LAYERS = (
    r"^aten::(linear|conv\w*|(native_)?(layer|batch|group)_norm|_fused_rms_norm|rms_norm|embedding|scaled_dot_product_\w+"
    r"|_?(log_)?softmax|gelu|silu_?|relu_?|dropout|lstm|gru)$"
)
_DOUBLE = r'^\["double"'  # what the op works on comes first; a number in Python is one, too, and comes later
_NUMBER = "[[],"
_GRADIENT = GRADIENT.decode()
_WHY_ON_HOST = "is spent in ops that compute in float64."
_OTHER_FLOATS = ("fp32", "tf32", "bf16", "fp16", "fp8")


def find(case: Case) -> Finding | None:
    """Models hardly ever need 64 bits, and NumPy makes them by default; all else may need them, and gets no promise."""
    if case.device is None:
        return _on_host(case)
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
    if not is_accident(case):
        return _advised(case, kernels["event"])
    return of_kernels(case, RULE, chosen, "is spent in kernels that compute in float64.")


def _on_host(case: Case) -> Finding | None:
    """Vector units hold half as many numbers of float64, and so do caches."""
    if case.trace.info.framework == "jax":
        return _in_host_programs(case)
    return _in_host_ops(case)


def _in_host_programs(case: Case) -> Finding | None:
    """Instructions of JAX's programs that make arrays of float64, if the job trains."""
    programs = host_programs(case)
    if not any(_GRADIENT in one.op_name for module in programs.values() for one in _instructions(module)):
        return None
    doubles = {name: _double_instructions(module) for name, module in programs.items()}
    found = {name: names for name, names in doubles.items() if names}
    owned = of_instructions(case, found) if found else None
    ns = case.per_step(owned) if owned is not None else 0
    if owned is None or ns < WORTH_A_FINDING * case.step_ns:
        return None
    share = going_share(case, owned)
    low, high = (1 - (1 - left) * share for left in (XLA_DOUBLE_TO_SINGLE_LEAST, DOUBLE_TO_SINGLE_MOST))
    detail = f"{case.of_step(ns)} {_WHY_ON_HOST}"
    return timed(case, RULE, owned, case.plan, detail, accounted=Interval(low, (low * high) ** 0.5, high))


def _double_instructions(module: Module) -> frozenset[str]:
    return frozenset(
        one.name
        for one in _instructions(module)
        if any(FORMATS.get(array.element) == "fp64" for array in one.shape.arrays())
    )


def _instructions(module: Module) -> Iterator[Instruction]:
    for number in module.bodies:
        yield from module.instructions(number)


def _in_host_ops(case: Case) -> Finding | None:
    """PyTorch's ops on arrays of float64."""
    if case.trace.info.framework != "pytorch" or not (case.workload == TRAINING or _has_layers(case)):
        return None
    dtypes = case.ops["dtypes"].cast(pl.String)
    shapes = case.ops["shapes"].cast(pl.String)
    double = dtypes.str.contains(_DOUBLE) & ~shapes.str.starts_with(_NUMBER) & case.ops["step"].is_not_null()
    chosen = case.ops.filter(double.fill_null(False)).select(
        "event", least=pl.lit(DOUBLE_TO_SINGLE_LEAST), most=pl.lit(DOUBLE_TO_SINGLE_MOST)
    )
    return of_host_ops(case, RULE, chosen, _WHY_ON_HOST)


def is_accident(case: Case) -> bool:
    """Whether float64 is hardly meant: in training, in layers of a network, and beside kernels that do with less."""
    if case.workload == TRAINING:
        return True
    times = case.compute.kernels.group_by("precision").agg(pl.col("time_ns").sum())
    by_precision = {str(name): int(ns) for name, ns in times.iter_rows()}
    others = sum(by_precision.get(name, 0) for name in _OTHER_FLOATS)
    if others >= ALSO_IN_SINGLE * by_precision["fp64"]:
        return True
    return _has_layers(case)


def _has_layers(case: Case) -> bool:
    ops = case.ops["name"].unique().drop_nulls().cast(pl.String)
    return bool(ops.str.contains(_LAYERS).any())


def _advised(case: Case, kernels: pl.Series) -> Finding | None:
    """Of a program that computes everything in float64 and has nothing of a network."""
    owned = case.free(pl.col("part") == "compute", pl.col("named_by").is_in(kernels.implode()))
    ns = case.per_step(owned)
    if ns < WORTH_A_FINDING * case.step_ns:
        return None
    found = RULE.finding(
        f"{case.of_step(ns)} is spent in kernels that compute in float64, as nearly everything does here. That is right "
        "where the result needs more than seven digits.",
        RULE.fix_for(case.trace.info.framework, case.has_device),
        evidence={"names": case.top_names(owned)},
        share=round(min(1.0, ns / case.step_ns), 4),
    )
    found.class_ = "advice"
    case.claim(owned)
    return found


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
    title_without_device="Ops compute in float64",
    turn_without_device=109,
    certainty=UNSURE_PRECISION,
    owns="kernels whose inputs are float64; without a device, ops of PyTorch whose first input is, if the job trains or has network layers, and what programs of JAX make in float64, if the job trains",
    change="products run at the speed of fp32, at best of TF32; the other kernels, and all ops without a device, take 45 to 60 % of their time (JAX on a CPU: 30 to 60 %). Nothing is promised if nearly everything is float64 and there is no training and no network layer: a solver may need it",
    fix={
        "pytorch": "Use float32: torch.from_numpy(x).float(), model.float(), dtype=np.float32 where arrays are made (NumPy makes float64), and no torch.set_default_dtype(torch.float64).",
        "tensorflow": "Use float32: tf.cast(x, tf.float32), dtype=np.float32 where arrays are made (NumPy makes float64), and tf.keras.backend.set_floatx('float32').",
        "jax": "Use float32: without jax_enable_x64, and dtype=jnp.float32 where arrays are made.",
        ANY: "Use float32.",
    },
    find=find,
)
