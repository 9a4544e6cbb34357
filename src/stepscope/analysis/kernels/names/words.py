"""Number formats that a kernel's name spells out as words, where it has no C++ types to read."""

from __future__ import annotations

from functools import lru_cache

from stepscope.analysis.kernels.names.dtypes import CPP_PATTERNS, SHORT, before_parameters
from stepscope.lazy import pattern

# _matmul_ogs_NNT_bf16xbf16xmxfp4_16x128, per_token_group_quant_fp8, fmha_fwd_hd128_bf16_causal
_WORD = pattern(
    r"(?:(?<![a-z0-9])|(?<=[0-9]x))"
    r"(nvfp4|mxfp[468]|fp4|e2m1|float8|fp8|e4m3|e5m2|bf16|bfloat16|fp16|f16|half|tf32|fp32|f32|fp64|f64)(?:fnuz|fn)?"
    r"(?:(?![a-z0-9])|(?=x[a-z]))"
)
# bmm_MxE4m3_MxE2m1MxE4m3_Fp32, fmhaSm100aKernel_QkvE4m3OBfloat16; sums (Fp32) say nothing of the operands.
_CAPITALS = pattern(r"(?<=[a-z0-9_A-Z])(E2m1|E4m3|E5m2|Bfloat16|Fp16)(?![a-z])")
# CuTe's Python compiler writes the types of arguments without marks between them: tensorptrbf16gmemalign16.
_CUTE = pattern(r"ptr(bf16|f16|f32|f8e4m3|f8e5m2|f4e2m1)(?:fnu?z?)?(?:gmem|smem|align|_|$)")
_NARROW_FIRST = ("fp4", "fp8", "bf16", "fp16", "tf32", "fp32", "fp64")

# Elements of pointers and of PyTorch's accessors in a list of parameters.
_ELEMENTS = pattern(r"([\w:]+)(?: const)?\s*\*|Accessor\w*<([\w: ]+)")
_WHOLE = r"(?:unsigned |signed )?(?:long long|long|int|short|char|bool|unsigned|u?int\d+_t)"
_WHOLE_ELEMENT = pattern(rf"\b{_WHOLE}$")
_WHOLE_ARGUMENTS = pattern(rf"<\s*{_WHOLE}(?:\s*,\s*(?:{_WHOLE}|\(?\w*\)?\d+\w*|true|false))*\s*>")


@lru_cache(maxsize=4096)
def of_words(name: str) -> str | None:
    """The narrowest floating format that the name spells out."""
    head = before_parameters(name)
    named = {SHORT[word] for word in _WORD.findall(head.lower())}
    named |= {SHORT[word.removeprefix("f8").removeprefix("f4")] for word in _CUTE.findall(head.lower())}
    named |= {SHORT[word.lower()] for word in _CAPITALS.findall(head)}
    return next((precision for precision in _NARROW_FIRST if precision in named), None)


def only_whole_numbers(name: str) -> bool:
    """Whether the types that a demangled name spells out are whole numbers alone: it indexes, counts or sorts."""
    head = before_parameters(name)
    if any(pattern.search(name) for _, pattern in CPP_PATTERNS):
        return False
    elements = [one or other.strip() for one, other in _ELEMENTS.findall(name[len(head) :])]
    if elements:
        return all(_WHOLE_ELEMENT.search(element) for element in elements)
    return bool(_WHOLE_ARGUMENTS.search(head))
