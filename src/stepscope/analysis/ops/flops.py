"""FLOPs and bytes of ops from their shapes. A multiply-add counts as two; a formula that is not sure gives null.

Bytes: every input read once in its own size, and every result written once. The formulas are in `formulas/`, one family
per file.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec
import polars as pl

from stepscope.analysis.formulas import attention, elementwise, lists, movement, products, reductions
from stepscope.analysis.formulas.call import Call, Cost, Tensor
from stepscope.analysis.formulas.compiled import TRITON, triton
from stepscope.analysis.formulas.products import Formula

KEY = ("name", "shapes", "dtypes", "concrete_inputs")
_LARGEST = 2**62
_FORMULAS: dict[str, Formula] = {
    **elementwise.FORMULAS,
    **reductions.FORMULAS,
    **movement.FORMULAS,
    **lists.FORMULAS,
    **attention.FORMULAS,
    **products.FORMULAS,
}


def work_of_ops(calls: pl.DataFrame) -> list[pl.Series]:
    """`flops` and `bytes` for each call, judged once per distinct name, shapes, dtypes and inputs."""
    distinct = calls.select(KEY).unique(maintain_order=True)
    found = [cost_of(*row) for row in distinct.iter_rows()]
    table = distinct.with_columns(
        pl.Series("flops", [cost.flops if cost else None for cost in found], dtype=pl.Int64),
        pl.Series("bytes", [total_bytes(cost) if cost else None for cost in found], dtype=pl.Int64),
    )
    joined = calls.select(KEY).join(table, on=KEY, how="left", nulls_equal=True, maintain_order="left")
    return [joined["flops"], joined["bytes"]]


@lru_cache(maxsize=65536)
def cost_of(
    name: str | None,
    shapes: str | None,
    dtypes: str | None,
    inputs: str | None,
    item: int | None = None,
    is_elementwise: bool = False,
) -> Cost | None:
    """The cost of one call; None where no formula fits.

    `item` is the size of an element where the profile names no type; an op without a formula may be known to be elementwise
    by its kernel.
    """
    base = (name or "").removeprefix("aten::")
    formula = _formula(base) or (elementwise.elementwise if is_elementwise else None)
    if formula is None or not shapes:
        return None
    try:
        found = formula(Call(base, _parsed(shapes), _parsed(dtypes), _parsed(inputs), item))
    except (ArithmeticError, IndexError, TypeError, ValueError, KeyError):
        return None
    return found if 0 <= found.flops < _LARGEST else None


def _formula(base: str) -> Formula | None:
    if base.startswith("_foreach_"):
        return lists.foreach
    return triton if TRITON.match(base) else _FORMULAS.get(base)


def sizes(tensors: list[Tensor]) -> list[int] | None:
    """Bytes of each tensor; None where a type is not known."""
    if any(tensor.item is None for tensor in tensors):
        return None
    return [tensor.elements * (tensor.item or 0) for tensor in tensors]


def total_bytes(cost: Cost) -> int | None:
    """What is read and written at least; None where a type is not known or nothing moves."""
    moved = sizes([*cost.reads, *cost.writes])
    total = sum(moved) if moved else 0
    return total if 0 < total < _LARGEST else None


def _parsed(text: str | None) -> list[Any]:
    try:
        value = msgspec.json.decode(text) if text else []
    except msgspec.DecodeError:
        return []
    return value if isinstance(value, list) else []
