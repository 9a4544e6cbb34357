"""Fused attention: 2·pairs·depth for each of two products forward, of five backward (one product is done again).

Pairs are those of queries and keys: half of them, and the diagonal, under a causal mask.
"""

from __future__ import annotations

from functools import partial

from stepscope.analysis.formulas.call import Call, Cost, Tensor
from stepscope.analysis.formulas.constants import ATTENTION_BACKWARD, CAUSAL_PLACES, SINGLE
from stepscope.analysis.formulas.products import Formula

_NO_MASK = ("", "0", "False", "None")


def _pairs(call: Call, queries: int, keys: int) -> int:
    """How many keys all queries of one head look at."""
    if call.get(CAUSAL_PLACES[call.name]) in _NO_MASK:
        return queries * keys
    seen = min(queries, keys)  # of the mask's first rows; the rest sees all keys
    return seen * (seen + 1) // 2 + (queries - seen) * keys


def _sides(query: Tensor, key: Tensor, value: Tensor, heads_first: bool) -> tuple[int, int, int, int, int]:
    """Batch · heads, lengths of queries and keys, depths of keys and values."""
    batch, one, two, depth = query.shape
    heads, length = (one, two) if heads_first else (two, one)
    keys = key.shape[2] if heads_first else key.shape[1]
    return batch * heads, length, keys, depth, value.shape[-1]


def _forward(call: Call, heads_first: bool) -> Cost:
    query, key, value = call.tensor(0), call.tensor(1), call.tensor(2)
    many, length, keys, depth, width = _sides(query, key, value, heads_first)
    flops = 2 * many * _pairs(call, length, keys) * (depth + width)
    out = Tensor((*query.shape[:-1], width), query.item)
    return Cost(flops, [query, key, value], [out, Tensor((many, length), SINGLE)])


def _backward(call: Call, heads_first: bool) -> Cost:
    grad, query, key, value = (call.tensor(place) for place in range(2 + 2))
    many, length, keys, depth, width = _sides(query, key, value, heads_first)
    of_keys, of_values = ATTENTION_BACKWARD
    flops = 2 * many * _pairs(call, length, keys) * (of_keys * depth + of_values * width)
    sums = Tensor((many, length), SINGLE)
    return Cost(flops, [grad, query, key, value, grad, sums], [query, key, value])


FORMULAS: dict[str, Formula] = {
    name: partial(
        _backward if name.endswith("_backward") else _forward,
        heads_first=name.startswith("_scaled_dot_product") or "cudnn" in name,
    )
    for name in CAUSAL_PLACES
}
