"""Names of fused attention: FlashAttention, cuDNN's, memory-efficient, TensorRT's and the serving engines' own."""

from __future__ import annotations

import re

from stepscope.analysis.kernels.names import dtypes
from stepscope.analysis.kernels.names.label import Context, Label, matrix, product_of
from stepscope.analysis.kernels.names.words import of_words
from stepscope.lazy import pattern
from stepscope.registers.calibration.kernels import HALF_TENSOR_SM, TF32_TENSOR_SM

# Helpers round the two matrix products: they sum, convert or combine, and never multiply matrices.
_HELPERS = pattern(
    r"dot_do_o|convert_dq|convert_dkv|clear_dkvaccum|combine|FwdCombine|BwdPreprocess|BwdPostprocess|seqlen|rotary"
    r"|merge_state|fill_philox|prepare_varlen",
    re.IGNORECASE,
)
_EFFICIENT = pattern(r"fmha_cutlass[FB]_(f32|f16|bf16)_\w{0,80}?sm(\d+)")
_TENSORRT = pattern(r"fmha_v2_\w{0,80}?(bf16|fp16|e4m3|fp32)|fmhaSm\d+\w{0,80}?Qkv?(Bfloat16|Fp16|E4m3)")
_FLASH = pattern(r"flash_(fwd|bwd)|flash::|pytorch_flash|FlashAttn(Fwd|Bwd)|flash_attn|_flash_attention")


def attention(name: str, context: Context) -> Label | None:
    """Fused attention, forward and backward."""
    for rule in (_cudnn, _efficient, _tensorrt, _flash, _serving):
        found = rule(name, context)
        if found is not None:
            return found
    return None


def _cudnn(name: str, context: Context) -> Label | None:
    """cuDNN's generated kernels call every 16-bit format f16, so only the op's inputs tell fp16 from bf16."""
    if re.search(r"cudnn::fusion::(compute_dot_do_o|convert_dq)", name):
        return Label(context.precision or "unknown", False, "reduction")
    if not name.startswith("cudnn_generated") or "sdpa" not in name:
        return None
    precision = "fp8" if re.search(r"_f8_|_e4m3_|_fp8_", name) else context.precision
    return Label(precision if precision in ("fp8", *dtypes.SIXTEEN_BITS) else "unknown", True, "attention")


def _efficient(name: str, context: Context) -> Label | None:
    """PyTorch's memory-efficient attention: in fp32 it uses the tensor cores from Ampere on, three tf32 products for one."""
    found = _EFFICIENT.search(name)
    if found is None:
        return None
    if found[1] != "f32":
        return Label(dtypes.SHORT[found[1]], int(found[2]) >= HALF_TENSOR_SM, "attention")
    return (
        Label("tf32", True, "attention")
        if int(found[2]) >= TF32_TENSOR_SM
        else Label("fp32", False, "attention")
    )


def _tensorrt(name: str, context: Context) -> Label | None:
    found = _TENSORRT.search(name)
    if found is None:
        return None
    precision = dtypes.SHORT[(found[1] or found[2]).lower()]
    return Label(precision, True if precision != "fp32" else None, "attention")


def _flash(name: str, context: Context) -> Label | None:
    if not _FLASH.search(name):
        return None
    head = dtypes.before_parameters(name)
    precision = dtypes.of_templates(name) or of_words(name)
    if _HELPERS.search(head.split("<")[0]) or re.search(r"FwdCombine|BwdPreprocess|BwdPostprocess", head):
        return matrix(precision, False, "reduction", context)
    if precision in ("fp16", "bf16", "fp8", "fp4"):
        return Label(precision, True, "attention")
    return product_of(context, "attention")  # a Triton kernel of that name carries no types


def _serving(name: str, context: Context) -> Label | None:
    """vLLM's paged attention is plain; FlashInfer's prefill uses the tensor cores, its decode says nothing."""
    if re.search(r"paged_attention_v[12]_kernel|single_query_cached_kv_attention", name):
        return matrix(dtypes.of_templates(name), False, "attention", context)
    if re.search(r"(BatchPrefill|SinglePrefill)With\w{0,80}Kernel", name):
        return matrix(dtypes.of_templates(name), True, "attention", context)
    if re.search(r"(BatchDecode|SingleDecode)With\w{0,80}Kernel", name):
        return matrix(dtypes.of_templates(name), None, "attention", context)
    return None
