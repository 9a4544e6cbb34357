"""Products with concatenated rows that were gathered from smaller tables, as the messages of a graph's edges are.

W [a; b] = Wa a + Wb b: a linear layer can be applied to the tables, and its results gathered and added. What says so is the order of
the ops that the program calls: gathers, a concatenation of as many rows and columns, and a product with exactly that.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from functools import cache
from typing import Any

import msgspec

from stepscope.lazy import dataclass
from stepscope.registers.policy.useless_work import REPEATED_ROWS_LEAST

_GATHERS = ("aten::index_select", "aten::index", "aten::embedding")
_PRODUCTS = ("aten::linear", "aten::mm", "aten::addmm", "aten::matmul")
_VIEWS = ("aten::view", "aten::reshape", "aten::contiguous", "aten::t", "aten::to", "aten::flatten")
_JOINS = ("aten::cat", "aten::concat", "aten::concatenate")
Matrix = tuple[int, int]


@dataclass(frozen=True)
class Concatenated:
    """`rows` × `columns` go into a product with `results` columns; applied to the tables, `share` of its work is left.

    `parts` of the concatenation were gathered, from tables of at most `table` rows.
    """

    rows: int
    columns: int
    results: int
    table: int
    parts: int
    share: float

    @property
    def joined(self) -> float:
        """The results of the parts are added, and nothing is joined: what that needs of the concatenation's traffic."""
        sums = self.parts - 1
        read, written = 2 * sums * self.results, sums * self.results
        return (read + written) / (2 * self.columns)


def may_have_concatenated(names: Collection[str]) -> bool:
    """Whether ops of these names can be any: rows are gathered, joined and multiplied."""
    return not any(set(needed).isdisjoint(names) for needed in (_GATHERS, _JOINS, _PRODUCTS))


def concatenated_rows(calls: Iterable[tuple[int, str, str | None]]) -> list[Concatenated]:
    """Those of the calls (thread, name, shapes) of a step, in their order."""
    found: dict[Concatenated, None] = {}
    gathers: list[Matrix] = []
    thread, joined = None, None
    matrices = cache(_matrices)
    for track, name, text in calls:
        if track != thread:
            thread, gathers, joined = track, [], None
        given = matrices(text)
        if name in _GATHERS and given:
            gathers, joined = [*gathers, given[0]], None
        elif name in _JOINS:
            joined = _join(gathers, given)
            gathers = []
        elif name in _PRODUCTS and joined is not None:
            made = _product(joined, given)
            found |= {made: None} if made else {}
            gathers, joined = [], None
        elif name not in _VIEWS:
            joined = None
            gathers = gathers if len(given) <= 1 else []
    return list(found)


@dataclass(frozen=True)
class _Joined:
    rows: int
    columns: int
    tables: tuple[Matrix, ...]
    left: float  # rows × columns that the parts' own tables have


def _join(gathers: list[Matrix], parts: list[Matrix]) -> _Joined | None:
    """The concatenation of columns, at least one part of which was gathered just before."""
    if len(parts) < 2 or len({rows for rows, _ in parts}) > 1:
        return None
    rows, columns = parts[0][0], sum(width for _, width in parts)
    free, tables, left = list(gathers), [], 0
    for _, width in parts:
        table = next((each for each in free if each[1] == width), None)
        if table is None or rows < REPEATED_ROWS_LEAST * table[0]:
            left += rows * width
            continue
        free.remove(table)
        tables.append(table)
        left += table[0] * width
    return _Joined(rows, columns, tuple(tables), left) if tables else None


def _product(joined: _Joined, given: list[Matrix]) -> Concatenated | None:
    """The product, if it gets the rows as they are, is cheaper on the tables, and has no wider result to gather."""
    if (joined.rows, joined.columns) not in given[:2]:
        return None
    share = joined.left / (joined.rows * joined.columns)
    sides = [side for each in given[1:] if each != (joined.rows, joined.columns) for side in each]
    results = next((side for side in sides if side != joined.columns), joined.columns)
    if share * REPEATED_ROWS_LEAST > 1 or results > max(width for _, width in joined.tables):
        return None
    table = max(rows for rows, _ in joined.tables)
    return Concatenated(joined.rows, joined.columns, results, table, len(joined.tables), share)


def _matrices(text: str | None) -> list[Matrix]:
    """The inputs of two and more dimensions as rows and columns; those of lists, too."""
    try:
        shapes = msgspec.json.decode(text or "[]")
    except msgspec.DecodeError:
        return []
    return [(math.prod(each[:-1]), each[-1]) for each in _flat(shapes) if len(each) > 1 and min(each) > 0]


def _flat(given: Any) -> list[list[int]]:
    """The lists of numbers in it, at any depth; what is none of both is not counted."""
    if not isinstance(given, list):
        return []
    if given and all(isinstance(each, int) for each in given):
        return [given]
    return [inner for each in given for inner in _flat(each)]
