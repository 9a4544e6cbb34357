"""Names of kernels that inference engines bring along: TensorRT-LLM's generated ones, Triton's MoE products, AOTriton, AITER.

Of a product of two formats the narrower is its precision: bf16 activations times mxfp4 weights are fp4.
"""

from __future__ import annotations

from stepscope.analysis.kernels.names import dtypes
from stepscope.analysis.kernels.names.label import Context, Label, matrix, product_of
from stepscope.analysis.kernels.names.words import of_words
from stepscope.lazy import pattern

# bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16: result, then the two operands, then the sums.
_GENERATED = pattern(r"^(?:bmm|gemm)_(?:Mx)?[A-Z]\w*?_((?:Mx)?(?:E\dm\d|Bfloat16|Fp\d+|Int8|Dp\w+?))+_")
_OPERANDS = pattern(r"^(?:bmm|gemm)_[A-Za-z0-9]+_([A-Za-z0-9]+)_")
_TRITON_PRODUCT = pattern(
    r"^_?(matmul_ogs|p_matmul_ogs|fused_moe_kernel|w8a8|scaled_mm|grouped_gemm|gemm_a\d+w\d+|\w*block_fp8_matmul)"
)
_MOE_PRODUCT = pattern(
    r"deep_gemm::|\bmarlin(_moe\w*)?::Marlin|machete::|fused_moe_kernel|moe_gemm|ck_moe|MoeGemm"
)
_AOTRITON = pattern(r"^(attn_fwd|attn_bwd|bwd_kernel_(dk_?dv|dq|fuse)|bwd_kernel_dkdvdq)(\.kd)?$")
_AOTRITON_HELPER = pattern(r"^(bwd_preprocess\w*|attn_\w*preprocess|debug_simulate_encoded_softmax)(\.kd)?$")
_ATTENTION = pattern(
    r"kernel_unified_attention|paged_attention_ll4mi|pa_decode|pa_(fwd|bf16|fp16|a16)|paged_attn|mla_(decode|prefill|fwd|a8w8)"
    r"|_fwd_(grouped_)?kernel_stage[12]|fmha_(fwd|bwd)_hd|_fwd_kernel_stage|decode_attention|extend_attention|mqa_logits"
)
_SUM = pattern(r"finalize_(matmul|moe)|finalizeMoe|moe_sum|_combine_\w*experts")
_ATTENTION_SUM = pattern(
    r"reduce_segments|_ll4mi_reduce|merge_attn_states|_fwd_kernel_stage2|pa_reduce|mla_reduce"
)


def engines(name: str, context: Context) -> Label | None:
    """Matrix products and attention of inference engines."""
    for rule in (_generated, _triton_products, _aotriton, _attention):
        found = rule(name, context)
        if found is not None:
            return found
    return None


def _generated(name: str, context: Context) -> Label | None:
    """TensorRT-LLM's generated products, which run on Blackwell's tensor cores alone."""
    if not _GENERATED.match(name):
        return None
    operands = _OPERANDS.match(name)
    return matrix(of_words(f"_{operands[1]}") if operands else None, True, "gemm", context)


def _triton_products(name: str, context: Context) -> Label | None:
    """Products written in Triton, DeepGEMM and Marlin: the formats are words of the name or types of the op."""
    if _SUM.search(name):
        return matrix(dtypes.of_templates(name) or of_words(name), False, "reduction", context)
    if not (_TRITON_PRODUCT.match(name) or _MOE_PRODUCT.search(name)):
        return None
    precision = of_words(name) or dtypes.of_templates(name) or context.precision
    return Label(precision, True, "gemm") if precision in dtypes.NARROW else product_of(context, "gemm")


def _aotriton(name: str, context: Context) -> Label | None:
    """PyTorch's fused attention on AMD: the kernels carry no types, the op does."""
    if _AOTRITON_HELPER.match(name):
        return matrix(None, False, "reduction", context)
    return product_of(context, "attention") if _AOTRITON.match(name) else None


def _attention(name: str, context: Context) -> Label | None:
    """Attention over a paged cache, and the sums over its pieces."""
    if _ATTENTION_SUM.search(name):
        return matrix(dtypes.of_templates(name) or of_words(name), False, "reduction", context)
    if not _ATTENTION.search(name):
        return None
    precision = dtypes.of_templates(name) or of_words(name)
    return (
        Label(precision, True, "attention")
        if precision in dtypes.NARROW
        else product_of(context, "attention")
    )
