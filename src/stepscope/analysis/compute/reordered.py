"""Copies that change a layout: the target has its dimensions in another order than the source.

PyTorch has no op for that: `contiguous`, `clone` and `to` all end in `copy_(target, source)`, and only the strides differ. Where a
profile has none (recorded without shapes, or replayed from a captured graph) a copy stays a copy.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import msgspec
import polars as pl

from stepscope.trace.lookup import are_named, rows_by_event
from stepscope.trace.trace import Trace

_COPY = "aten::copy_"


def reordering_copies(trace: Trace, kernels: pl.DataFrame) -> pl.Series:
    """For each of the kernels (event, class) whether it copies a tensor into another order of its dimensions."""
    copies = (kernels["class"] == "copy").fill_null(False)
    none = pl.repeat(False, len(kernels), dtype=pl.Boolean, eager=True)
    recorded = trace.cold.get("op") if copies.any() else None
    if recorded is None or "strides" not in recorded.columns:
        return none
    events, place = trace.events, copies.arg_true()
    row = rows_by_event(trace.kernels["event"], len(events)).gather(kernels["event"].gather(place))
    op = trace.kernels["op"].gather(row)
    is_copy = are_named(events["name"].gather(op), lambda names: names == _COPY)
    op, place = op.filter(is_copy), place.filter(is_copy)
    if op.is_empty():
        return none
    facts = pl.DataFrame(
        {
            "shapes": trace.ops["shapes"].gather(rows_by_event(trace.ops["event"], len(events)).gather(op)),
            "strides": recorded["strides"].gather(rows_by_event(recorded["event"], len(events)).gather(op)),
        }
    )
    known = facts.unique()
    verdicts = [_reorders(*each) for each in known.cast(pl.String).iter_rows()]
    judged = known.with_columns(pl.Series("reorders", verdicts, dtype=pl.Boolean))
    found = facts.join(judged, on=facts.columns, how="left", nulls_equal=True, maintain_order="left")
    return none.scatter(place.filter(found["reorders"]), True)


def _reorders(shapes: str | None, strides: str | None) -> bool:
    """Whether two dimensions are the other way round; one of length 1, or repeated (a stride of 0), has no order."""
    try:
        shape, _ = _pair(shapes)
        target, source = _pair(strides)
    except (msgspec.DecodeError, TypeError, ValueError):
        return False
    if not len(shape) == len(target) == len(source):  # the source is broadcast, or something is missing
        return False
    sizes = zip(shape, target, source, strict=True)
    apart = [(into, out) for size, into, out in sizes if size > 1 and into and out]
    return any((one[0] - two[0]) * (one[1] - two[1]) < 0 for one, two in combinations(apart, 2))


def _pair(text: str | None) -> tuple[list[int], list[int]]:
    """What is said of the target and of the source."""
    first, second, *_ = msgspec.json.decode(text or "", type=list[Any])
    return msgspec.convert(first, list[int]), msgspec.convert(second, list[int])
