"""The answer of the name rules, and what they may know besides the name."""

from __future__ import annotations

import re

from stepscope.analysis.kernels.names.dtypes import of_op
from stepscope.lazy import dataclass
from stepscope.registers.calibration.kernels import TF32_CAPABILITY

MATRIX_FAMILIES = ("gemm", "conv", "attention", "rnn")
PLAIN_FAMILIES = ("norm", "elementwise", "reduction")


@dataclass(frozen=True)
class Label:
    """`family`: gemm, conv, attention, rnn; gemv (with a vector), depthwise; elementwise, reduction, norm, optimizer,
    random, movement, ordering, solver, collective, fusion (a compiler's, of any kind) or unknown."""

    precision: str
    tensor_cores: bool | None
    family: str


@dataclass(frozen=True)
class Compiled:
    """What a compiled module says of one kernel; `exact` is False for a product of fp32 data that may be rounded."""

    precision: str | None
    product: bool
    exact: bool = True


@dataclass(frozen=True)
class Context:
    """What is known besides the name. `dtypes` is the op's list of input types as the profile recorded it."""

    op: str | None = None
    dtypes: str | None = None
    framework: str | None = None
    compute_capability: tuple[int, int] | None = None
    compiled: Compiled | None = None
    device_kind: str | None = None

    @property
    def precision(self) -> str | None:
        """The format of the operands, where the profile recorded it."""
        return self.compiled.precision if self.compiled else of_op(self.dtypes)


def matrix(precision: str | None, tensor_cores: bool | None, family: str, context: Context) -> Label:
    """A matrix product whose name may not tell its format: then the op's input types do."""
    return Label(precision or context.precision or "unknown", tensor_cores, family)


def product_of(context: Context, family: str) -> Label:
    """A compiler's matrix product: 16-bit and smaller operands go to the tensor cores; fp32 may or may not."""
    precision, compiled = context.precision, context.compiled
    if precision in ("fp16", "bf16", "fp8", "fp4", "int8", "tf32"):
        return Label(precision, True, family)
    if compiled and precision == "fp32":
        if context.device_kind == "tpu":
            # The matrix unit multiplies bf16: once by default, several times where all digits are asked for.
            return Label("fp32" if compiled.exact else "bf16", True, family)
        if compiled.exact:
            return Label(
                "fp32", False, family
            )  # asked for in full precision, which the tensor cores do not have
        if context.framework == "jax" and (context.compute_capability or (0, 0)) >= (TF32_CAPABILITY, 0):
            return Label(
                "tf32", True, family
            )  # JAX leaves it to XLA, which rounds unless the highest is asked for
    return Label("unknown", None, family)  # fp32 data, but perhaps rounded to tf32


def by_operands(name: str) -> str:
    """The kind of work that plain words in a name tell, for names of no known family."""
    lowered = name.lower()
    if re.search(r"attention|attn|fmha|\bmha_", lowered):
        return "attention"
    if re.search(r"gemm|matmul|\bmm_kernel|_mm_", lowered):
        return "gemm"
    if re.search(r"conv[123]?d|convol", lowered):
        return "conv"
    if re.search(r"norm(?!al)", lowered):
        return "norm"
    if re.search(r"softmax|reduce|cumsum", lowered):
        return "reduction"
    plain = r"elementwise|act_and_mul|activation|silu|gelu|swiglu|rotary|rope|quant"
    return "elementwise" if re.search(plain, lowered) else "unknown"
