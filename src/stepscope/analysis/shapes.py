"""Shapes of what ops are given, and what strides say of them: a tensor that `expand` repeats has a stride of zero."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

import msgspec
import polars as pl

from stepscope.trace.trace import Trace

Shape = tuple[int, ...]


def shapes_in(text: str | None) -> list[Shape]:
    """Of each input; numbers and lists of arrays have none."""
    try:
        found = msgspec.json.decode(text or "[]", type=list[list[object]])
    except (msgspec.DecodeError, ValueError):
        return []
    return [tuple(size for size in shape if isinstance(size, int)) for shape in found]


def arrays_in(text: str | None) -> list[Shape]:
    """Of each array among the inputs, those of lists too; numbers have none."""
    try:
        return list(_arrays(msgspec.json.decode(text or "[]", type=list[object])))
    except (msgspec.DecodeError, ValueError):
        return []


def _arrays(given: list[object]) -> Iterator[Shape]:
    for each in given:
        if isinstance(each, list) and each:
            sizes = [size for size in each if isinstance(size, int)]
            yield from [tuple(sizes)] if len(sizes) == len(each) else _arrays(each)


def recorded_strides(trace: Trace) -> pl.DataFrame:
    """op, strides (text), of the ops that have them in the file."""
    recorded = trace.cold.get("op")
    if recorded is None or "strides" not in recorded.columns:
        return pl.DataFrame(schema={"op": pl.UInt32, "strides": pl.String})
    return recorded.select(op="event", strides=pl.col("strides").cast(pl.String))


def held_shapes(shapes: str | None, strides: str | None) -> list[Shape]:
    """Of each input before `expand`: what memory holds. As recorded where strides are not."""
    given = shapes_in(shapes)
    return [
        _before_expand(*each) for each in zip_longest(given, shapes_in(strides)[: len(given)], fillvalue=())
    ]


def _before_expand(shape: Shape, strides: Shape) -> Shape:
    if len(strides) != len(shape):
        return shape
    return tuple(1 if stride == 0 else size for size, stride in zip(shape, strides, strict=True))
