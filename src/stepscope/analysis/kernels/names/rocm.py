"""Names of AMD's matrix products: Tensile and hipBLASLt, Composable Kernel, MIOpen."""

from __future__ import annotations

import re

from stepscope.analysis.kernels.names import dtypes
from stepscope.analysis.kernels.names.label import Context, Label, matrix
from stepscope.lazy import pattern

# Cijk_Ailk_Bjlk_BBS_BH_..._MI16x16x1_...: the first letter after the index maps is the operands' type.
_TENSILE = pattern(r"(?:Custom_)?Cijk_A\w{3,5}_B\w{3,5}_([A-Z0-9]+?)(_MX)?_")
_TENSILE_TYPES = {"S": "fp32", "D": "fp64", "H": "fp16", "B": "bf16", "I": "int8", "C": "fp32", "Z": "fp64"}
_MATRIX_INSTRUCTION = pattern(r"_MI\d+x\d+x\d+|MFMA|_MI(?:16|32|4)_")
_C_TYPES = {
    "float": "fp32",
    "ushort": "bf16",
    "double": "fp64",
}  # as naive_conv_…_float_double_float has them
_IGEMM = pattern(r"igemm_(fwd|bwd|wrw)_gtcx?\d?_\w{0,80}?(fp16|bf16|fp32|int8)")


def rocm(name: str, context: Context) -> Label | None:
    """Matrix cores are used where the name carries a matrix instruction (MI16x16x1) or CK's `xdl` and `wmma`."""
    for rule in (_tensile, _miopen, _composable):
        found = rule(name, context)
        if found is not None:
            return found
    return None


def _tensile(name: str, context: Context) -> Label | None:
    found = _TENSILE.match(name)
    if found is None:
        return None
    code = found[1]
    if found[2]:
        precision: str | None = "tf32"  # AMD's own name is xf32
    elif re.match(r"(F8|B8)", code):
        precision = "fp8"
    elif re.match(r"F4", code):
        precision = "fp4"
    else:
        precision = _TENSILE_TYPES.get(code[0])
    return matrix(precision, bool(_MATRIX_INSTRUCTION.search(name)), "gemm", context)


def _miopen(name: str, context: Context) -> Label | None:
    found = _IGEMM.search(name)
    if found:
        return Label(dtypes.SHORT[found[2]], "gtcx" in name, "conv")
    if re.search(r"miopenSp3AsmConv|naive_conv_|miopenGcnAsmConv|MIOpenConv", name):
        short = re.search(r"(fp16|bf16|fp32|half|bfloat16)|_(float|ushort|double)_", name)
        precision = dtypes.SHORT.get(short[1] or "") or _C_TYPES.get(short[2] or "") if short else None
        return matrix(precision or dtypes.of_templates(name), False, "conv", context)
    return None


def _composable(name: str, context: Context) -> Label | None:
    if not re.search(r"\bck::|ck_tile::|N2ck|N7ck_tile|kernel_gemm_xdl|kernel_gemm_wmma", name):
        return None
    uses = True if re.search(r"xdl|Xdl|wmma|Wmma|mfma|Fmha|MFMA", name) else None
    family = (
        "attention"
        if re.search(r"[Ff]mha", name)
        else "conv"
        if re.search(r"[Cc]onv|GridwiseGroupedConv", name)
        else "gemm"
    )
    if re.search(r"elementwise|Elementwise|reduce_|Reduce", name) and not re.search(r"gemm|Gemm|Fmha", name):
        return matrix(dtypes.of_templates(name), False, "elementwise", context)
    return matrix(dtypes.of_templates(name), uses, family, context)
