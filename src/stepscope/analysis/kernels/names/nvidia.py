"""Names of matrix products and convolutions in NVIDIA's libraries: cuBLAS, cuBLASLt, cuDNN, CUTLASS."""

from __future__ import annotations

import re

from stepscope.analysis.kernels.names import dtypes
from stepscope.analysis.kernels.names.label import Context, Label, matrix
from stepscope.lazy import pattern

# nvjet_sm90_tst_..., nvjet_qqtst_...: operand types of A (and B where it differs), C, sum, result. Only the first
# letter matters here: it is what the tensor cores read. nvjet kernels exist for the tensor cores alone, so fp32
# operands mean tf32.
_NVJET = pattern(r"nvjet_(?:sm\d+a?_)?([a-z]{3,6})_")
_NVJET_TYPES = {
    "h": "fp16",
    "t": "bf16",
    "s": "tf32",
    "q": "fp8",
    "r": "fp8",
    "o": "fp4",
    "b": "int8",
    "d": "fp64",
}

_TYPE = r"(tf32|bf16|f16|f32|f64|e4m3|e5m2|e2m1|i8|s8|u8|i4|i32|s32|cf32|cf64|c32|c64)"
# sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_...: the third type is what the multiplication reads.
_XMMA = pattern(rf"_{_TYPE}{_TYPE}_{_TYPE}{_TYPE}_{_TYPE}(?:_|$)")

# tensorop_bf16_s16816gemm_relu_bf16, s1688fprop_optimized_tf32, h884gemm, i16832gemm_s8, d884gemm, s64x128x16gemm_bf16
_INSTRUCTION = pattern(
    r"(?<![a-z0-9])(?:(?P<out>fp16|f16|bf16|int8|fp8)_)?(?P<sum>[hsdcizb])(?P<shape>\d{3,6}|\d+x\d+x\d+)"
    r"(?P<fast>tf32|bf16|f16)?(?P<kind>gemm|fprop|dgrad|wgrad|cudnn|conv|spgemm|grouped)"
    r"(?P<rest>\w*)"
)
_SIMT = pattern(
    r"(?<![a-z0-9])(?P<in>fp16|bf16)?_?(?P<sum>[hsdczi])(?P<kind>gemm|cudnn|fprop|dgrad|wgrad)(?P<rest>\w*)"
)
_NAMED_TYPE = pattern(
    r"(?<![a-z0-9])(tf32|bf16|fp16|f16|e4m3|e5m2|e2m1|s8|u8|int8|s4|u4|int4|f64|f32)(?![a-z0-9])"
)
_SCALED_TYPE = pattern(r"u?e\d+m\d+x(e2m1|e[45]m[23])")
_SUM_TYPES = {"h": "fp16", "s": "fp32", "d": "fp64", "c": "fp32", "z": "fp64", "i": "int8"}


def nvjet(name: str, context: Context) -> Label | None:
    """cuBLAS on Hopper and later."""
    found = _NVJET.search(name)
    if found is None:
        return None
    return matrix(_NVJET_TYPES.get(found[1][0]), True, "gemm", context)


def xmma(name: str, context: Context) -> Label | None:
    """cuBLAS and cuDNN since Ampere: fp32 stays fp32 unless the name says tf32."""
    if "xmma" not in name:
        return None
    if re.search(r"init_device_workspace|kernel_helper_stage_\d", name):
        return Label("none", False, "movement")
    if "execute_split_k_kernel" in name:
        return Label(_xmma_type(name) or "unknown", False, "reduction")  # adds up what the main kernel left
    precision = _xmma_type(name)
    family = "gemm" if re.search(r"xmma_(sparse_)?gemm", name) else "conv"
    if precision is None:
        return matrix(None, True if "tensor" in name else None, family, context)
    return matrix(precision, _xmma_tensor(name, precision), family, context)


def _xmma_type(name: str) -> str | None:
    found = _XMMA.search(name)
    return dtypes.SHORT.get(found[3]) if found else None


def _xmma_tensor(name: str, precision: str) -> bool | None:
    if re.search(r"_[fdh]fma2?(_|$)|simt", name):
        return False
    if re.search(r"_tensor\d", name):
        return True
    if precision == "fp64":
        return None
    return precision != "fp32"


def named_cutlass(name: str, context: Context) -> Label | None:
    """CUTLASS's own names, as cuBLAS and cuDNN build them: cutlass_80_tensorop_..., cutlass3x_sm100_simt_sgemm_..."""
    found = re.search(r"cutlass(?:3x)?_(?:sm)?(?:\d+_)?(wmma_)?((?:bs|sp)?tensorop|simt|wmma)_?(\w*)", name)
    if found is None:
        return None
    rest = (found[1] or "") + found[3]
    family = "conv" if re.search(r"fprop|dgrad|wgrad|conv", rest) else "gemm"
    if found[2] == "simt":
        return matrix(_simt_type(rest), False, family, context)
    return matrix(_instruction_type(rest), True, family, context)


def legacy(name: str, context: Context) -> Label | None:
    """cuBLAS and cuDNN of Volta to Ampere: volta_h884gemm_..., turing_fp16_s1688cudnn_fp16_..., ampere_sgemm_..."""
    bare = name.removeprefix("void ").removeprefix("cudnn_infer_").removeprefix("cudnn_train_")
    if not re.match(r"(maxwell|pascal|volta|turing|ampere|ada|hopper|sm\d+)_", bare):
        return _old_kernels(bare, context)
    found = _INSTRUCTION.search(bare)
    family = "conv" if re.search(r"cudnn|fprop|dgrad|wgrad|conv", bare) else "gemm"
    if found:
        return matrix(_instruction_type(bare), True, family, context)
    return matrix(_simt_type(bare), False, family, context) if _SIMT.search(bare) else None


def _old_kernels(bare: str, context: Context) -> Label | None:
    """Templates from before these names, all on the plain cores."""
    if re.match(
        r"(implicit_convolve_|explicit_convolve_)?[sdh]gemm(_|<)|implicit_convolve_sgemm|gemm_kernel2x2|gemmSN_",
        bare,
    ):
        family = "conv" if "convolve" in bare else "gemm"
        return matrix(dtypes.of_templates(bare) or _simt_type(bare), False, family, context)
    return None


def _instruction_type(text: str) -> str | None:
    """The operand format of a tensor-core instruction as CUTLASS writes it."""
    scaled = _SCALED_TYPE.search(text)
    if scaled:
        return dtypes.SHORT[scaled[1]]
    found = _INSTRUCTION.search(text)
    if found is None:
        return _first_type(text)
    if found["fast"]:
        return dtypes.SHORT[found["fast"]]
    if found["sum"] == "h":
        return "fp16"
    if found["sum"] in "dz":
        return "fp64"
    named = _first_type(found["rest"])
    if named and named != "fp32":
        return named
    if found["sum"] == "i":
        return "int8" if found["shape"] not in ("8832", "16864") else "int4"
    if found["sum"] in "sc" and found["shape"] in ("1688", "884") and named is None:
        return (
            "tf32"
            if found["shape"] == "1688" and found["out"] is None
            else dtypes.SHORT.get(found["out"] or "")
        )
    return dtypes.SHORT.get(found["out"] or "")


def _first_type(text: str) -> str | None:
    found = _NAMED_TYPE.search(text)
    return dtypes.SHORT[found[1]] if found else None


def _simt_type(text: str) -> str | None:
    """fp16_sgemm_fp16 reads fp16, whatever it adds in."""
    found = _SIMT.search(text)
    if found is None:
        return _first_type(text)
    narrow = dtypes.SHORT.get(found["in"] or "") or _first_type(found["rest"])
    return narrow or _SUM_TYPES[found["sum"]]


# Warp and warp-group instructions inside CUTLASS 3 templates: MMA_64x128x16_F32BF16BF16_SS, SM80_16x8x16_F32F16F16F32_TN.
_ATOM = pattern(r"\d+x\d+x\d+_(?:F32|F16|S32|F64)(BF16|TF32|F16|F64|E4M3|E5M2|E2M1|S8|U8|S4|U4)")
_BLACKWELL_ATOM = pattern(r"SM1\d\d_MMA_(F16BF16|TF32|F8F6F4|MXF8F6F4|MXF4\w*|S8)_")


def cutlass_template(name: str, context: Context) -> Label | None:
    """CUTLASS kernels whose whole type is the name, mangled or not."""
    if not re.search(r"cutlass|cute::|SM\d+_(MMA_|\d+x\d+x\d+_)", name):
        return None
    if "prepare_grouped_gemm_data" in name:
        return Label("none", False, "movement")
    if re.search(r"ReduceSplitK|reduction6kernel|reduction::kernel|\bPermute|TensorReduce", name):
        return Label(dtypes.of_templates(name) or "unknown", False, "reduction")
    family = (
        "conv" if re.search(r"ImplicitGemm|[Cc]onv(?:\d|6kernel|::)|[Ff]prop|[DdWw]grad", name) else "gemm"
    )
    if re.search(r"MmaSimt|OpClassSimt|MmaThread|UniversalFMA", name):
        return matrix(dtypes.of_templates(name), False, family, context)
    atom = _ATOM.search(name)
    if atom:
        return matrix(dtypes.SHORT[atom[1].lower()], True, family, context)
    precision = _template_operands(name)
    tensor = re.search(r"TensorOp|GMMA|SM90|SM1\d\d_MMA|[Ss]m90|[Ss]m100|Wgmma|tensorop", name)
    return matrix(precision, True if tensor else None, family, context)


def _template_operands(name: str) -> str | None:
    """Operands in order of width; fp32 operands of the tensor cores are tf32, or smaller where the operator says."""
    for word, precision in (("FastBF16", "bf16"), ("FastF16", "fp16"), ("FastF32", "tf32")):
        if f"OpMultiplyAdd{word}" in name:
            return precision
    blackwell = _BLACKWELL_ATOM.search(name)
    if blackwell and blackwell[1].startswith("MXF4"):
        return "fp4"
    if re.search(r"\bsigned char\b|\bint8_t\b|OpMultiplyAddSaturate", name):
        return "int8"
    found = dtypes.of_templates(name)
    return (
        "tf32"
        if found == "fp32" and blackwell and blackwell[1] == "TF32"
        else found
        if found != "fp32"
        else None
    )


# Products with vectors and very small matrices, sums over split products, scaling: cuBLAS runs them on plain cores.
_VECTOR = pattern(
    r"gemv|\bdot_kernel|reduce_1Block_kernel|gemmk1_kernel|gemmSN_|\bger_kernel|\bscal_kernel|\baxpy_kernel|\bnrm2_kernel"
    r"|asum_kernel|splitKreduce_kernel|cublasLt::epilogue|cublasLt::\w*[tT]ranspose"
)


def vector(name: str, context: Context) -> Label | None:
    """cuBLAS besides its matrix products."""
    if not _VECTOR.search(name):
        return None
    vectors = re.search(r"gemv|gemmk1|ger_kernel|dot_kernel", name)
    family = "gemv" if vectors else "gemm" if "gemm" in name else "reduction"
    return matrix(dtypes.of_templates(name), False, family, context)


_CUDNN_PLAIN = pattern(
    r"flip_filter|pointwise_mult_and_sum_complex|conv2d_c1_k1|dgrad_engine|wgrad_alg\d_engine|dgrad_alg\d_engine|winograd|fft[12]d|conv2d_grouped_direct|grouped_direct|dgrad2d|wgrad2d"
    r"|conv_depthwise|depthwise|bn_(fw|bw)_|pooling|softmax_(fw|bw)|op_generic_tensor|OpTensor|reduce_wgrad|scalePackedTensor"
    r"|op_tensor|add_tensor|tensorTransformGeneric|compute_dot_do_o|convert_dq_to|norm_(fw|bw)"
)


def cudnn(name: str, context: Context) -> Label | None:
    """cuDNN besides its tensor-core products, and PyTorch's own direct convolutions."""
    plain = _CUDNN_PLAIN.search(name)
    if plain is None or not re.search(
        r"cudnn|conv|grad|winograd|RNN|LSTM|GRU|fft|norm|pool|filter|complex", name
    ):
        return None
    word = plain[0]
    convolution = re.search(r"grad|winograd|fft|conv|direct|filter|complex", word) and "reduce" not in word
    family = (
        "depthwise"
        if "depthwise" in word
        else "conv"
        if convolution
        else "norm"
        if re.search(r"bn_|norm", word)
        else "elementwise"
    )
    return matrix(dtypes.of_templates(name), False, family, context)


def recurrent(name: str, context: Context) -> Label | None:
    """cuDNN's recurrent cells: whole layers in one kernel, and the steps round their matrix products."""
    if re.search(r"\bRNN_(init|copy)|persistRNN_init", name):
        return Label("none", False, "movement")
    if re.search(r"elemWiseRNNcell|(LSTM|GRU|GENERIC)_elementWise", name):
        return matrix(dtypes.of_templates(name), False, "elementwise", context)
    if not re.search(r"(ampere|turing|volta|hopper)_(lstm|gru|rnn)_|RNN_blockPersist|persistRNN", name):
        return None
    # Measured in 16 bits alone.
    precision = dtypes.of_templates(name) or context.precision
    return Label(precision or "unknown", True if precision in dtypes.SIXTEEN_BITS else None, "rnn")
