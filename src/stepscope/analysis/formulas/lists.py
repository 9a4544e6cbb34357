"""Ops on lists of tensors: optimizers, and the `_foreach_` family that they are made of."""

from __future__ import annotations

from stepscope.analysis.formulas.call import LISTS, Call, Cost, Tensor
from stepscope.analysis.formulas.constants import ADAM_FLOPS, LIST_PASSES, SGD_FLOPS, SINGLE
from stepscope.analysis.formulas.products import Formula


def _flat(lists: list[list[Tensor]]) -> list[Tensor]:
    return [tensor for each in lists for tensor in each]


def foreach(call: Call) -> Cost:
    """Every member of every list is read; the first list is written, or one like it."""
    lists = call.lists()
    first = lists[0]
    if call.name == "_foreach_zero_":
        return Cost(0, [], first)
    if call.name == "_foreach_copy_":
        return Cost(0, lists[1], first)
    written = [Tensor((len(first),), SINGLE)] if call.name == "_foreach_norm" else first
    return Cost(sum(tensor.elements for tensor in first), _flat(lists), written)


def _fused_adam(call: Call) -> Cost:
    """_fused_adam_(parameters, gradients, first moments, second moments, …, steps)."""
    parameters, gradients, first, second = call.lists()[: 2 + 2]
    flops = ADAM_FLOPS * sum(tensor.elements for tensor in parameters)
    return Cost(flops, _flat([parameters, gradients, first, second]), _flat([parameters, first, second]))


def _fused_sgd(call: Call) -> Cost:
    """_fused_sgd_(parameters, gradients, momenta)."""
    parameters, gradients, *momenta = call.lists()
    kept = momenta[:1]
    flops = SGD_FLOPS * sum(tensor.elements for tensor in parameters)
    return Cost(flops, _flat([parameters, gradients, *kept]), _flat([parameters, *kept]))


def passes(name: str, dtypes: str) -> int:
    """How often an element of the lists is read or written, where only the types of the arguments are known."""
    base = name.removeprefix("aten::")
    if base in LIST_PASSES:
        return LIST_PASSES[base]
    lists = dtypes.count(LISTS)
    if base in ("_foreach_zero_", "_foreach_copy_"):
        return lists
    return lists if base == "_foreach_norm" else lists + 1


FORMULAS: dict[str, Formula] = {
    "_fused_adam_": _fused_adam,
    "_fused_adamw_": _fused_adam,
    "_fused_sgd_": _fused_sgd,
}
