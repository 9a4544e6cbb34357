"""Products that multiply by a huge square matrix which nothing computes or trains: such matrices are mostly zeros."""

from __future__ import annotations

import math

import msgspec
import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import of_kernels
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.registers.calibration.kernels import FUSED_CHAIN_BANDWIDTH, PARAMETER_BYTES
from stepscope.registers.policy.useless_work import (
    DENSE_ROWS_LEAST,
    DENSE_TIMES_COLUMNS,
    NEIGHBOURS_LEAST,
    NEIGHBOURS_MOST,
    UNSURE_ZEROS,
)


def find(case: Case) -> Finding | None:
    """A matrix of n × n, as of the edges of a graph, times one with few columns; no product makes an n × n matrix."""
    if not case.peaks or not case.peaks.bytes_per_s:
        return None
    rows = _products(case)
    if rows.is_empty():
        return None
    reached = FUSED_CHAIN_BANDWIDTH * case.peaks.bytes_per_s
    # A sparse product reads a row of the other matrix for each entry that is not zero.
    row_ns = pl.col("flops") / (2 * pl.col("side")) * PARAMETER_BYTES / reached * 1e9 / pl.col("time_ns")
    chosen = rows.select(
        "event",
        least=(row_ns * NEIGHBOURS_LEAST).clip(upper_bound=1.0),
        most=(row_ns * NEIGHBOURS_MOST).clip(upper_bound=1.0),
    )
    side = int(rows["side"].max() or 0)  # type: ignore[arg-type]
    why = f"multiplies by a matrix of {side:,} × {side:,} that no product computes and no step trains; such matrices, as of the edges of a graph, are mostly zeros."
    return of_kernels(case, RULE, chosen, why, evidence={"side": side})


def _products(case: Case) -> pl.DataFrame:
    """event, side, flops, time_ns of the products with such a matrix on the left."""
    products = case.compute.kernels.filter(
        pl.col("class") == "matmul", pl.col("flops") > 0, pl.col("time_ns") > 0
    ).select("event", "flops", "time_ns")
    op = pl.coalesce(pl.col("op"), pl.col("event"))
    calls = products.join(case.trace.kernels.select("event", op=op), on="event", how="left")
    calls = calls.with_columns(op=op).join(
        case.ops.select(op="event", shapes=pl.col("shapes").cast(pl.String)), on="op"
    )
    sides = {text: found for text in calls["shapes"].unique().drop_nulls() if (found := _sides(text))}
    made = {rows for rows, _, columns in sides.values() if rows == columns}
    squares = {
        text: rows
        for text, (rows, inner, columns) in sides.items()
        if rows == inner and rows not in made and rows >= DENSE_ROWS_LEAST
        if columns * DENSE_TIMES_COLUMNS <= rows
    }
    table = pl.DataFrame(
        {"shapes": list(squares), "side": list(squares.values())},
        schema={"shapes": pl.String, "side": pl.Int64},
    )
    return calls.join(table, on="shapes", maintain_order="left")


def _sides(text: str) -> tuple[int, int, int] | None:
    """Rows, inner side and columns of a product by its operands' shapes; a compiler may have split the inner side in two."""
    try:
        shapes = msgspec.json.decode(text, type=list[list[int]])
    except (msgspec.DecodeError, ValueError):
        return None
    operands = [shape for shape in shapes if len(shape) > 1 and min(shape) > 0][:2]
    if len(operands) < 2:
        return None
    left, right = operands
    for rows in (left[0], left[-1]):
        inner = math.prod(left) // rows
        if inner and math.prod(right) % inner == 0 and inner in (right[0], right[-1], math.prod(right[:-1])):
            return rows, inner, math.prod(right) // inner
    return None


RULE: Rule[Case] = Rule(
    code="dense-zeros",
    title="Products multiply by a huge matrix that may be mostly zeros",
    turn=178,
    page="kernels",
    certainty=UNSURE_ZEROS,
    owns="products with a square left matrix that has 4096 rows or more and at least 8 times as many as the other has columns, if no product of the step makes a matrix of that size",
    change="each row of the result reads 8 to 100 rows of the other matrix at 60 % of memory bandwidth, as a sparse product does",
    fix={
        "pytorch": "If it is mostly zeros (an adjacency matrix), keep the entries alone: a sparse matrix (A.to_sparse_csr() @ x), or gather the rows of the edges and index_add_ (scatter) them.",
        "jax": "If it is mostly zeros (an adjacency matrix), keep the entries alone: gather the rows of the edges and sum them with jax.ops.segment_sum, or jax.experimental.sparse.BCOO.",
        ANY: "If it is mostly zeros (an adjacency matrix), keep the entries alone: a sparse product, or gather and scatter.",
    },
    find=find,
    needs_device=True,
)
