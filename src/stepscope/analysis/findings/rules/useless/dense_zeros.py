"""Products that multiply by a huge square matrix which nothing computes or trains: such matrices are mostly zeros."""

from __future__ import annotations

import math

import msgspec
import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import of_kernels
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.spread import OF_BOUNDS
from stepscope.analysis.formulas.constants import ITEM_BYTES
from stepscope.analysis.matrices import SampledMatrix, sampled_matrices
from stepscope.analysis.serving.workload import INFERENCE
from stepscope.lazy import dataclass
from stepscope.registers.calibration.kernels import (
    FUSED_CHAIN_BANDWIDTH,
    PARAMETER_BYTES,
    SPARSE_READ_FAST,
    SPARSE_READ_SLOWLY,
    SPARSE_SUMMED_FAST,
    SPARSE_TRAINED_FAST,
    SPARSE_TRAINED_SLOWLY,
)
from stepscope.registers.policy.findings import WORTH_A_FINDING
from stepscope.registers.policy.useless_work import (
    DENSE_ROWS_LEAST,
    DENSE_TIMES_COLUMNS,
    MOSTLY_ZEROS,
    NEIGHBOURS_LEAST,
    NEIGHBOURS_MOST,
    UNSURE_ZEROS,
)


@dataclass(frozen=True)
class _Sampled:
    """The shares of entries that are not zero in matrices of one size, and the bytes of an entry."""

    least: float
    most: float
    item_bytes: int


def find(case: Case) -> Finding | None:
    """A matrix of n × n, as of the edges of a graph, times one with few columns; no product makes an n × n matrix."""
    if not case.peaks or not case.peaks.bytes_per_s:
        return None
    rows = _products(case)
    if rows.is_empty():
        return None
    # How long it takes to read one row of the other matrix for each row of the result.
    row_ns = pl.col("flops") / (2 * pl.col("side")) / case.peaks.bytes_per_s * 1e9 / pl.col("time_ns")
    sampled = _sampled(case)
    if sampled and set(rows["side"].unique()) <= set(sampled):
        return _find_sampled(case, rows, row_ns, sampled)
    row_ns *= PARAMETER_BYTES / FUSED_CHAIN_BANDWIDTH
    # A sparse product reads a row of the other matrix for each entry that is not zero.
    chosen = rows.select(
        "event",
        least=(row_ns * NEIGHBOURS_LEAST).clip(upper_bound=1.0),
        most=(row_ns * NEIGHBOURS_MOST).clip(upper_bound=1.0),
    )
    side = int(rows["side"].max() or 0)  # type: ignore[arg-type]
    why = f"multiplies by a matrix of {side:,} × {side:,} that no product computes and no step trains; such matrices, as of the edges of a graph, are mostly zeros."
    return of_kernels(case, RULE, chosen, why, evidence={"side": side})


def _sampled(case: Case) -> dict[int, _Sampled]:
    """What the capture counted in square matrices, by their side; nothing where those of one side are not alike."""
    by_side: dict[int, list[SampledMatrix]] = {}
    for each in sampled_matrices(case.trace):
        if each.shape[0] == each.shape[1] and each.dtype in ITEM_BYTES:
            by_side.setdefault(each.shape[0], []).append(each)
    found = {}
    for side, alike in by_side.items():
        least, most = (end(each.nonzero for each in alike) for end in (min, max))
        if least > MOSTLY_ZEROS or most <= MOSTLY_ZEROS:
            # A row without an edge is possible in a sample, a matrix without any is not worth a product.
            floor = 1 / side
            item_bytes = max(ITEM_BYTES[each.dtype] for each in alike)
            found[side] = _Sampled(max(least, floor), max(most, floor), item_bytes)
    return found


def _find_sampled(
    case: Case, rows: pl.DataFrame, row_ns: pl.Expr, sampled: dict[int, _Sampled]
) -> Finding | None:
    """The same where the zeros are known: a row of the other matrix is read for each entry that is not zero."""
    table = pl.DataFrame(
        [
            (side, side * each.least * each.item_bytes, side * each.most * each.item_bytes)
            for side, each in sampled.items()
            if each.most <= MOSTLY_ZEROS
        ],
        schema={"side": pl.Int64, "fewest": pl.Float64, "most": pl.Float64},
        orient="row",
    )
    slow, fast = _speeds(case)
    left = rows.join(table, on="side", maintain_order="left").select(
        "event",
        "side",
        "time_ns",
        least=row_ns * pl.col("fewest") / fast,
        most=row_ns * pl.col("most") / slow,
    )
    expected = (pl.col("least") * pl.col("most")).sqrt()
    left = left.filter(expected < 1)
    saved = left.select((pl.col("time_ns") * (1 - expected)).sum()).item() / case.step_count
    if left.is_empty() or saved < WORTH_A_FINDING * case.step_ns:
        return None
    side = int(left["side"].max() or 0)  # type: ignore[arg-type]
    share = sampled[side].most
    why = (
        f"multiplies by a matrix of {side:,} × {side:,} that is mostly zeros: 1 of {round(1 / share):,} entries is not zero "
        f"({share * side:.3g} in a row), as counted in a sample of its rows after the recording."
    )
    chosen = left.select("event", "least", pl.col("most").clip(upper_bound=1.0))
    evidence = {"side": side, "nonzero": share}
    title = "Products multiply by a huge matrix that is mostly zeros"
    found = of_kernels(case, RULE, chosen, why, evidence=evidence, title=title, spread=OF_BOUNDS)
    return found and msgspec.structs.replace(found, certainty=1.0)


def _speeds(case: Case) -> tuple[float, float]:
    """How fast rows are read at worst and at best, as a share of the memory's bandwidth.

    In PyTorch what training takes depends on the fix: a sparse matrix of coordinates is sorted again in each backward pass, and a
    message along each edge is written to memory, while a matrix of compressed rows with its transpose needs neither.
    """
    if case.trace.info.framework != "pytorch":
        return SPARSE_READ_SLOWLY, SPARSE_SUMMED_FAST
    if case.workload == INFERENCE:
        return SPARSE_READ_SLOWLY, SPARSE_READ_FAST
    return SPARSE_TRAINED_SLOWLY, SPARSE_TRAINED_FAST


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
    change="each row of the result reads 8 to 150 rows of the other matrix at 60 % of memory bandwidth, as a sparse product does. If the capture counted the entries that are not zero, it reads as many rows as there are in its row of the matrix: at 55 to 110 % of memory bandwidth in JAX, and up to 190 % in PyTorch (rows stay in the cache), but 6 to 70 % if the job trains, by the way that the backward pass takes; nothing is found if the matrix is not mostly zeros",
    fix={
        "pytorch": "Keep only what is not zero of a matrix that is mostly zeros (an adjacency matrix): a sparse matrix (A.to_sparse_csr() @ x; in training, with a CSR matrix of its transpose for the backward pass), or gather the rows of the edges and index_add_ (scatter) them, which writes a message for each edge and is slower.",
        "jax": "Keep only what is not zero of a matrix that is mostly zeros (an adjacency matrix): gather the rows of the edges and sum them with jax.ops.segment_sum, or jax.experimental.sparse.BCOO.",
        ANY: "Keep only what is not zero of a matrix that is mostly zeros (an adjacency matrix): a sparse product, or gather and scatter.",
    },
    find=find,
    needs_device=True,
)
