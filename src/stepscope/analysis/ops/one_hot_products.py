"""Products of TensorFlow's graphs that read a one-hot matrix: a profile has no shapes of these ops, but their order and names show them.

A thread of the executor goes on with what the op before it made ready, so that a product which follows a `OneHot` in the same turn of it
reads its result. Numbers of classes have no gradient: of a layer that reads any other matrix, the backward pass has two products.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import polars as pl

from stepscope.analysis.ops.graph_scopes import PRODUCTS, scoped_ops
from stepscope.lazy import dataclass
from stepscope.registers.policy.useless_work import ONE_HOT_READ_LEAST, ONE_HOT_TIMES_NEXT
from stepscope.trace.trace import Trace

_MAKES = "OneHot"
_NOT_YET = ""  # another thread goes on with a matrix, joined with others
_JOINS = ("ConcatV2", "Pack")
# What changes no number of a one-hot matrix, or joins and adds up several, as for a bag of words; and what products read besides.
_CARRIES = (
    r"^(Cast|ConcatV2|Const|ExpandDims|Identity|Max|Pack|ReadVariableOp|Reshape|Shape|Squeeze|Sum|Transpose)$"
)
_OWN_NAME = re.compile(r"(^|/)(\w*MatMul\w*|Einsum(_\d+)?)$")


@dataclass(frozen=True)
class OneHotProducts:
    """`products`: the names of those of the forward pass; `events`: these, their gradients, and what makes the matrices."""

    products: tuple[str, ...]
    events: pl.Series


@dataclass(frozen=True)
class _Use:
    """One turn of the executor: `made`, the events that made the matrix, by `made_ns`, and the product; `next_ns` of the op after it."""

    path: str
    made: tuple[int, ...]
    made_ns: int = 0
    product: int = 0
    ns: int = 0
    next_ns: int = 0


def find_one_hot_products(trace: Trace, ops: pl.DataFrame) -> OneHotProducts | None:
    """Those of a wide matrix: it takes long to read, beside what is done with the product."""
    scoped = scoped_ops(trace, ops)
    scoped = scoped.with_columns(turn=trace.events["parent"].gather(scoped["event"]))
    makes = scoped.filter(pl.col("name") == _MAKES, ~pl.col("backward")).drop_nulls("turn")
    if makes.is_empty():
        return None
    uses: dict[str, list[_Use]] = {}
    for use in _uses(scoped.filter(pl.col("turn").is_in(makes["turn"].implode()))):
        uses.setdefault(use.path, []).append(use)
    waiting = [event for use in uses.pop(_NOT_YET, []) for event in use.made]
    products = scoped.filter(pl.col("name").str.contains(PRODUCTS))
    gradients = {path: _gradients_of(products, path) for path in uses}
    wide = [path for path, mine in uses.items() if _is_wide(mine) and gradients[path]["path"].n_unique() < 2]
    if not wide:
        return None
    mine = [event for path in wide for use in uses[path] for event in (*use.made, use.product)]
    if scoped.filter(pl.col("event").is_in(mine), pl.col("name").is_in(_JOINS)).height:
        mine += waiting
    events = pl.Series("event", mine, dtype=pl.UInt32)
    found = pl.concat([events, *(gradients[path]["event"] for path in wide)]).unique()
    return OneHotProducts(tuple(sorted(wide)), found)


def _uses(rows: pl.DataFrame) -> Iterator[_Use]:
    """What reads the matrices that were made in the same turn."""
    for turn in rows.sort("turn", "start_ns").partition_by("turn", maintain_order=True):
        yield from _uses_in_turn(turn.to_dicts())


def _uses_in_turn(rows: list[dict[str, Any]]) -> Iterator[_Use]:
    made: list[dict[str, Any]] = []
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        if row["name"] == _MAKES or (made and re.search(_CARRIES, row["name"])):
            made.append(row)
        elif made:
            if re.search(PRODUCTS, row["name"]) and not row["backward"]:
                yield _use(made, row, after)
            made = []
    if made:
        yield _Use(_NOT_YET, tuple(row["event"] for row in made))


def _use(made: list[dict[str, Any]], product: dict[str, Any], after: dict[str, Any] | None) -> _Use:
    made_ns = sum(row["ns"] for row in made if row["name"] == _MAKES)
    events = tuple(row["event"] for row in made)
    next_ns = 0 if after is None else after["ns"]
    return _Use(product["path"], events, made_ns, product["event"], product["ns"], next_ns)


def _is_wide(uses: list[_Use]) -> bool:
    """Whether the product reads all of the matrix, and far more numbers than it makes: to make and to read them takes far longer than what follows."""
    made, ns, after = (
        sum(use.made_ns for use in uses),
        sum(use.ns for use in uses),
        sum(use.next_ns for use in uses),
    )
    return ns >= ONE_HOT_READ_LEAST * made and min(made, ns) >= ONE_HOT_TIMES_NEXT * after


def _gradients_of(products: pl.DataFrame, path: str) -> pl.DataFrame:
    """The products of the backward pass that belong to one of the forward pass; a fused one has the name of its last op."""
    own = re.escape(path)
    if not _OWN_NAME.search(path):
        own = re.escape(path.rpartition("/")[0] + "/" if "/" in path else "") + r"MatMul(_\d+)?"
    return products.filter("backward", pl.col("path").str.contains(rf"^{own}/"))
