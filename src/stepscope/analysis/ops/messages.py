"""Messages along the edges of a graph: rows gathered from a table, weighted, and added to rows of another, which is a sparse product.

What says so is the order of the ops: a gather, perhaps a product with one weight for each row, and a scatter of as many rows and columns.
Its gradient is the same the other way round.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cache

import msgspec

from stepscope.lazy import dataclass

_GATHERS = ("aten::index", "aten::index_select", "aten::embedding", "aten::gather")
_WEIGHS = ("aten::mul", "aten::mul_")
_ADDS = (
    "aten::index_add",
    "aten::index_add_",
    "aten::scatter_add",
    "aten::scatter_add_",
    "aten::_index_put_impl_",
    "aten::index_put_",
    "aten::embedding_dense_backward",
)
_ZEROS = ("aten::zeros", "aten::zeros_like", "aten::new_zeros", "aten::zero_", "aten::fill_", "aten::full")
Matrix = tuple[int, int]
Call = tuple[int, int, str, str | None, str | None]


@dataclass(frozen=True)
class Messages:
    """`ops` write `rows` × `columns` out of elements of type `dtype`, from a table of `table` rows."""

    ops: tuple[int, ...]
    rows: int
    columns: int
    table: int
    dtype: str


def may_have_messages(names: Collection[str]) -> bool:
    """Whether ops of these names can be any: rows are gathered, and some are added up."""
    return not set(_GATHERS).isdisjoint(names) and not set(_ADDS).isdisjoint(names)


def find_messages(calls: Iterable[Call]) -> list[Messages]:
    """Those of the calls that work on the device (thread, event, name, shapes, dtypes), in their order.

    None where as many rows are multiplied element by element: weights that are trained need the messages themselves.
    """
    found: list[Messages] = []
    by_element: set[Matrix] = set()
    thread, begun = None, None
    matrices = cache(_matrices)  # a step repeats the shapes of the one before
    for track, event, name, text, dtypes in calls:
        if track != thread:
            thread, begun = track, None
        given = matrices(text)
        if name in _GATHERS:
            kinds = msgspec.json.decode(dtypes or "[]")
            begun = (
                Messages((event,), 0, given[0][1], given[0][0], str(kinds[0])) if given and kinds else None
            )
        elif name in _WEIGHS and len(given) > 1 and given[0] == given[1]:
            by_element.add(given[0])
            begun = None
        elif begun is None or name in _ZEROS:
            continue
        elif name in _WEIGHS:
            begun = _weighed(begun, event, given)
        else:
            found += _added(begun, event, given) if name in _ADDS else []
            begun = None
    return [each for each in found if (each.rows, each.columns) not in by_element]


def _weighed(begun: Messages, event: int, given: list[Matrix]) -> Messages | None:
    """With one weight for each row; none where they have one for each element, which no sparse product takes."""
    rows = max((height for height, _ in given), default=0)
    if sorted(given) != sorted([(rows, begun.columns), (rows, 1)]):
        return None
    return Messages((*begun.ops, event), rows, begun.columns, begun.table, begun.dtype)


def _added(begun: Messages, event: int, given: list[Matrix]) -> list[Messages]:
    """Where as many rows are added as were made."""
    rows = max((height for height, width in given if width == begun.columns), default=0)
    if not rows or begun.rows not in (0, rows) or begun.columns == 1:
        return []
    return [Messages((*begun.ops, event), rows, begun.columns, begun.table, begun.dtype)]


def _matrices(text: str | None) -> list[Matrix]:
    try:
        shapes = msgspec.json.decode(text or "[]", type=list[list[int]])
    except (msgspec.DecodeError, ValueError):
        return []
    found = []
    for shape in shapes:
        match shape:
            case [rows, columns]:
                found.append((rows, columns))
    return found
