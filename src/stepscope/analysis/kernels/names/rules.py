"""What a kernel's name says: the number format of its operands, whether it uses tensor cores, what kind of work it is.

`precision` is the format of the operands that the main arithmetic reads, not of its sums: a matrix product of bf16
matrices that adds in fp32 is bf16, and so is an elementwise kernel on bf16 tensors. tf32 is fp32 data rounded for
the tensor cores, also where three such products stand in for one exact one. `none` is work without floating-point
arithmetic: moving, filling, sorting, indexing, whole numbers. `unknown` and None mean that nothing tells; no rule
guesses. Tensor cores are the matrix units of any vendor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from stepscope.analysis.kernels.names import dtypes
from stepscope.analysis.kernels.names.attention import attention
from stepscope.analysis.kernels.names.compiled import compiled_by_xla, inductor, xla
from stepscope.analysis.kernels.names.engines import engines
from stepscope.analysis.kernels.names.label import (
    MATRIX_FAMILIES,
    PLAIN_FAMILIES,
    Context,
    Label,
    by_operands,
)
from stepscope.analysis.kernels.names.nvidia import (
    cudnn,
    cutlass_template,
    legacy,
    named_cutlass,
    nvjet,
    recurrent,
    vector,
    xmma,
)
from stepscope.analysis.kernels.names.other import collective, framework, moving, scientific
from stepscope.analysis.kernels.names.rocm import rocm
from stepscope.analysis.kernels.names.words import of_words, only_whole_numbers
from stepscope.registers.policy.tables import LONGEST_KERNEL_NAME

__all__ = ["Context", "Label", "label"]

NOTHING = Context()
Rule = Callable[[str, Context], Label | None]

# The first rule that knows the name decides; the families that quote others' words come first.
RULES: tuple[Rule, ...] = (
    collective,
    nvjet,
    engines,
    attention,
    compiled_by_xla,
    inductor,
    xmma,
    named_cutlass,
    legacy,
    cutlass_template,
    rocm,
    vector,
    recurrent,
    cudnn,
    moving,
    framework,
    scientific,
    xla,
)


@lru_cache(maxsize=65536)
def label(name: str, context: Context = NOTHING) -> Label:
    """What the name tells, helped by the launching op's input types where the family is known."""
    name = name[:LONGEST_KERNEL_NAME]
    name = name.removesuffix(".kd")  # ROCm's mark of a kernel's descriptor
    for rule in RULES:
        found = rule(name, context)
        if found is not None:
            return found if found.precision != "unknown" else _by_inputs(found, name, context)
    return _of_no_family(name, context)


def _of_no_family(name: str, context: Context) -> Label:
    """A name of no known family: types in its template and words are evidence of its operands."""
    family = by_operands(name)
    precision = dtypes.of_templates(name) or of_words(name)
    found = Label(precision or "unknown", False if family in PLAIN_FAMILIES else None, family)
    return found if precision else _by_inputs(found, name, context)


def _by_inputs(found: Label, name: str, context: Context) -> Label:
    """A label without a format gets that of the op's inputs. A product of fp32 data may be rounded to tf32: unknown."""
    if only_whole_numbers(name) or dtypes.whole_numbers(context.dtypes):
        return replace(found, precision="none")
    precision = context.precision
    if precision is None or (precision == "fp32" and found.family in MATRIX_FAMILIES):
        return found
    return replace(found, precision=precision)
