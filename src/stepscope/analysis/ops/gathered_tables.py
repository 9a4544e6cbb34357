"""Tables that a function of TensorFlow computes as a whole, and then gathers rows of.

A profile has no shapes of TensorFlow's ops, but the gradient of a gather shows what it is of. That of a variable stays sparse. That of
a computed table is made dense (`UnsortedSegmentSum`) for the gradient of the op that computed it, and is named by this op.
How many of the rows are gathered shows in the times: to gather all takes about as long as an op on all.
"""

from __future__ import annotations

import re

import polars as pl

from stepscope.analysis.ops.graph_scopes import PRODUCTS
from stepscope.lazy import dataclass
from stepscope.registers.policy.findings import TOP_NAMES
from stepscope.registers.policy.useless_work import WHOLE_TABLE_LEAST

_MADE_DENSE = "UnsortedSegmentSum"
_GATHERS = r"^(Resource)?Gather(V2|Nd)?$"
# The gradient's own op, and which of its arguments is made dense.
_ARGUMENT = re.compile(r"^(.+)/[A-Z]\w*/[a-z]\w*$")
# Ops that treat each element, or each row, as all others: they may as well follow the gather.
_BY_ROW = (
    r"^(Abs|Add(N|V2)?|BiasAdd(Grad)?|BroadcastTo|Cast|Div(NoNan)?|Elu(Grad)?|Erf|Exp|Greater(Equal)?|Less(Equal)?|Log|"
    r"Maximum|Mean|Minimum|Mul(NoNan)?|Neg|Pow|RealDiv|Reciprocal|Relu(Grad)?|Rsqrt(Grad)?|Select(V2)?|Sigmoid(Grad)?|Softplus(Grad)?|"
    r"Sqrt(Grad)?|Square|SquaredDifference|Sub|Sum|Tanh(Grad)?|Tile|UnsortedSegmentSum|ZerosLike|_UnaryOpsComposition)$"
)


# Functions of which a table may be divided by the result, or that come before its last op.
_NORMS = r"(l2_normalize|moments|norm|normalize)(_\d+)?/"
_SUMS = r"^(ArithmeticOptimizer/AddOpsRewrite_)?AddN(_\d+)?$"  # of gradients, which are sparse then
_PLAIN_UPDATES = r"^sgd(_\d+)?/"  # an optimizer with moments updates all rows anyway
_MOMENTS = r"^Assign(Add)?VariableOp$"


@dataclass(frozen=True)
class GatheredTables:
    """`last`: the last op on each table, by its name; `events`: all ops on them, and on their gradients."""

    last: tuple[str, ...]
    events: pl.Series


def find_tables(ops: pl.DataFrame) -> GatheredTables | None:
    """Those of which few rows are gathered; ops as `scoped_ops` has them."""
    dense = ops.filter(pl.col("name") == _MADE_DENSE, "backward")
    found = [_ARGUMENT.match(path) for path in dense["path"].unique()]
    last = sorted({each[1] for each in found if each})
    gathers = ops.filter(pl.col("name").str.contains(_GATHERS), ~pl.col("backward"))
    if not last or gathers.is_empty():
        return None
    longest = gathers.group_by("path").agg(pl.col("ns").mean())["ns"].sort()[-1]
    mean = pl.col("ns").mean().over("path", "backward")
    ops = ops.with_columns(long=mean >= WHOLE_TABLE_LEAST * longest)
    known = {path: events for path in last if len(events := _ops_on(ops, path))}
    if not known:
        return None
    return GatheredTables(
        tuple(known)[:TOP_NAMES], pl.concat([*known.values(), _ops_on_gradients(ops)]).unique()
    )


def _ops_on(ops: pl.DataFrame, path: str) -> pl.Series:
    """Ops of the last op's scope, and of those around it that take as long as ops on all rows do; none if it does not itself."""
    path_of = pl.col("path")
    by_row = ops.filter(pl.col("name").str.contains(_BY_ROW))
    own = by_row.filter(path_of.str.contains(rf"^{re.escape(path)}(/|$)"))
    if not own.filter(~pl.col("backward"))["long"].any():
        return own["event"].clear()
    around = path.rpartition("/")[0]
    inside = f"{around}/" if around else ""
    of_scope = path_of.str.starts_with(inside)
    # Products around it may mix rows, so that what comes before them has to stay.
    has_products = ops.filter(of_scope, "long", pl.col("name").str.contains(PRODUCTS)).height > 0
    near = path_of.str.contains(rf"^{re.escape(inside)}{_NORMS}") if has_products else of_scope
    return pl.concat([own["event"], by_row.filter(near, "long")["event"]]).unique()


def _ops_on_gradients(ops: pl.DataFrame) -> pl.Series:
    """Sums of dense gradients, and updates of all rows by an optimizer that keeps nothing of each."""
    chosen = pl.col("path").str.contains(_SUMS)
    plain = pl.col("path").str.contains(_PLAIN_UPDATES)
    if not ops.filter(plain, "long")["name"].str.contains(_MOMENTS).any():
        chosen |= plain
    return ops.filter("long", ~pl.col("backward"), chosen)["event"]
