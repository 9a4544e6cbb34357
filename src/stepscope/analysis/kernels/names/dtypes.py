"""Number formats as kernel names, C++ templates and framework ops spell them."""

from __future__ import annotations

from functools import lru_cache

from stepscope.analysis.kernels.names.mangled import words_of
from stepscope.lazy import pattern

PRECISIONS = (
    "fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8", "int4", "none", "unknown",
)  # fmt: skip
SIXTEEN_BITS = ("fp16", "bf16")
NARROW = ("fp4", "fp8", *SIXTEEN_BITS, "int8")  # what a matrix product reads on the tensor cores

# Short tokens of library names: sm90_xmma_gemm_bf16bf16_bf16f32_f32, s16816gemm_bf16, E4m3.
SHORT = {
    "f64": "fp64", "f32": "fp32", "fp32": "fp32", "tf32": "tf32", "f16": "fp16", "fp16": "fp16", "half": "fp16",
    "bf16": "bf16", "bfloat16": "bf16", "e4m3": "fp8", "e5m2": "fp8", "fp8": "fp8", "e2m1": "fp4", "fp4": "fp4",
    "i8": "int8", "s8": "int8", "u8": "int8", "int8": "int8", "i4": "int4", "s4": "int4", "u4": "int4",
    "int4": "int4", "mxfp4": "fp4", "nvfp4": "fp4", "mxfp6": "fp8", "mxfp8": "fp8", "float8": "fp8", "cf32": "fp32", "c32": "fp32", "cf64": "fp64", "c64": "fp64",
}  # fmt: skip

# C++ types, demangled or mangled; narrow ones first, since a kernel on 16-bit data also names its fp32 sums.
_CPP: tuple[tuple[str, str], ...] = (
    ("fp4", r"float_e2m1_t|__nv_fp4\w*|Float4_e2m1\w*"),
    ("fp8", r"float_e[45]m[23]\w*_t|float_ue8m0_t|__nv_fp8\w*|Float8_e\w+|float8_e\w+|hip_fp8\w*"),
    ("bf16", r"\bc10::BFloat16\b|\b(?:__)?(?:nv_|hip_)?bfloat16\b|\bbfloat16_t\b|10bfloat16_t|BFloat16E|\d__(?:nv|hip)_bfloat16|\bBFloat16\b|\bbf16_t\b|ck_tile::bfloat16_t"),
    ("fp16", r"\bc10::Half\b|\b__half2?\b|\bhalf_t\b|6half_t|4HalfE|6__half|\bEigen::half\b|\bhalf\b|\b_Float16\b|\bHalf\b"),
    ("tf32", r"\btfloat32_t\b|10tfloat32_t"),
    ("fp32", r"\bfloat[24]?\b(?!_)|\bc10::complex<float>"),
    ("fp64", r"\bdouble2?\b"),
)  # fmt: skip
CPP_PATTERNS = tuple((precision, pattern(text)) for precision, text in _CPP)
_OP_TYPES = {
    "float": "fp32", "double": "fp64", "c10::half": "fp16", "c10::bfloat16": "bf16", "half": "fp16", "bfloat16": "bf16",
    "c10::complex<float>": "fp32", "c10::complex<double>": "fp64", "signed char": "int8",
    "float32": "fp32", "float64": "fp64", "float16": "fp16", "f32": "fp32", "f64": "fp64", "f16": "fp16", "bf16": "bf16",
    "s8": "int8", "int8": "int8",
}  # fmt: skip
_WHOLE = frozenset(
    ("int", "long int", "short int", "unsigned char", "signed char", "bool", "int64", "int32", "uint8")
)
_QUOTED = pattern(r'"([^"]*)"')


def of_templates(name: str) -> str | None:
    """The narrowest floating format among the template arguments, the parameter list left out."""
    head = f"{before_parameters(name)} {words_of(name)}"
    return next((precision for precision, pattern in CPP_PATTERNS if pattern.search(head)), None)


def before_parameters(name: str) -> str:
    """`void kernel<A, B>(int, float*)` without its parameters; what stands inside < > stays whole."""
    around: list[str] = []
    for at, char in enumerate(name):
        if char == "(" and not around and not name.startswith("(anonymous", at):
            return name[:at]
        if char in "<(":
            around.append(char)
        # `8 > 0` inside parentheses compares, and `->` points.
        elif char == ">" and around[-1:] == ["<"] and name[at - 1 : at] != "-":
            around.pop()
        elif char == ")" and "(" in around:
            while around.pop() != "(":
                pass
    return name


@lru_cache(maxsize=4096)
def of_op(dtypes: str | None) -> str | None:
    """The format of an op's first floating operand, from its recorded input types; None where none is known."""
    for text in _QUOTED.findall(dtypes or ""):
        lowered = text.lower()
        found = _OP_TYPES.get(lowered) or (
            "fp8" if "float8" in lowered or lowered.startswith("f8e") else None
        )
        if found:
            return found
    return None


def whole_numbers(dtypes: str | None) -> bool:
    """Whether all tensors that the op was given are of whole numbers or bools, as far as they were recorded."""
    known = [
        text.lower() for text in _QUOTED.findall(dtypes or "") if text not in ("", "Scalar", "ScalarList")
    ]
    return bool(known) and all(text in _WHOLE for text in known)


def is_uniform(dtypes: str) -> bool:
    """Whether the floating inputs of an op all have the same format."""
    found = {of_op(f'"{text}"') for text in _QUOTED.findall(dtypes)} - {None}
    return len(found) == 1
