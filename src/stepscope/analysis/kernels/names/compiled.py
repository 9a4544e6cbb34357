"""Names of kernels that a compiler wrote: Inductor's Triton kernels and XLA's fusions."""

from __future__ import annotations

import re

from stepscope.analysis.kernels.names import dtypes
from stepscope.analysis.kernels.names.label import Context, Label, product_of
from stepscope.lazy import pattern

_INDUCTOR = pattern(r"triton_(poi|red|per|tem|mix|for|unk|split_scan)_fused?")
_XLA_PLAIN = pattern(
    r"^(loop|input|wrapped|horizontal\w*|transpose|scatter|concatenate|reduce|copy|dynamic)_\w*"
)
_XLA_PRODUCT = pattern(r"^(gemm_fusion|triton_gemm|dot_general|dot)(_|$|\.)|^__triton_nested_gemm")
_XLA_SOFTMAX = pattern(r"^(triton_softmax|softmax_)")
_XLA_FUSION = pattern(r"^fusion(_\d+)*$")
_MOVES_ONLY = pattern(
    r"^(wrapped|loop|input)_((dynamic|update|slice|concatenate|transpose|copy|broadcast|bitcast|convert|iota|pad|gather|reverse|fusion)_?)+\d*$"
)


def inductor(name: str, context: Context) -> Label | None:
    """Pointwise and reduction kernels never multiply matrices; templates do, in the format of the op's inputs."""
    found = _INDUCTOR.match(name)
    if found is None:
        return None
    if found[1] == "tem":
        family = "attention" if re.search(r"attention|flex", name) else "conv" if "conv" in name else "gemm"
        return product_of(context, family)
    if found[1] == "mix":
        return Label(context.precision or "unknown", None, "fusion")
    family = "reduction" if found[1] in ("red", "per", "split_scan") else "elementwise"
    untold = "none" if dtypes.whole_numbers(context.dtypes) else "unknown"
    return Label(context.precision or untold, False, family)


# copy-start.3, copy-done, async-copy, dynamic-slice-done: what TPUs list of work that only moves data.
_XLA_MOVES = pattern(
    r"^((async-)?(copy|slice|dynamic-(update-)?slice|send|recv|async)(-start|-done|-update)?)(\.\d+)*$"
)


def xla(name: str, context: Context) -> Label | None:
    """Loop and reduce fusions run on the plain cores; a matrix product's format stands in the module, not the name."""
    if context.framework == "jax" and _XLA_MOVES.match(name):
        return Label("none", False, "movement")
    if _XLA_PRODUCT.match(name):
        return product_of(context, "gemm")
    if context.framework not in ("jax", "tensorflow") and not re.match(r"(loop|input|wrapped)_\w*", name):
        return None
    if _MOVES_ONLY.match(name):
        return Label("none", False, "movement")
    if _XLA_PLAIN.match(name) or _XLA_SOFTMAX.match(name):
        family = "reduction" if re.search(r"reduce|softmax", name) else "elementwise"
        return Label(context.precision or "unknown", False, family)
    return Label(context.precision or "unknown", None, "fusion") if _XLA_FUSION.match(name) else None


def compiled_by_xla(name: str, context: Context) -> Label | None:
    """Where the module tells, it is believed, not the name.

    XLA leaves `gemm_fusion_dot_76` the name of a product that it has moved to a library; what that kernel still does
    is elementwise.
    """
    compiled = context.compiled
    if compiled is None:
        return None
    if compiled.product:
        return product_of(context, "gemm")
    if compiled.precision == "none":
        return Label("none", False, "movement")
    return Label(compiled.precision or "unknown", False, "reduction" if "reduce" in name else "elementwise")
