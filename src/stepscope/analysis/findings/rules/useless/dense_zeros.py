"""Products that multiply by a huge square matrix which nothing computes or trains: such matrices are mostly zeros."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import polars as pl

from stepscope.analysis.compute.classes import are_products
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.programs.host_ops import computed_ns, of_host_ops
from stepscope.analysis.findings.promise import least_left, left_by_replay, of_kernels, shorten_kernels
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.spread import OF_BOUNDS
from stepscope.analysis.formulas.constants import ITEM_BYTES
from stepscope.analysis.matrices import SampledMatrix, sampled_matrices
from stepscope.analysis.serving.workload import INFERENCE
from stepscope.lazy import dataclass
from stepscope.registers.calibration.host_ops import HOST_SPARSE_ENTRY_FAST, HOST_SPARSE_ENTRY_SLOWLY
from stepscope.registers.calibration.kernels import (
    FUSED_CHAIN_BANDWIDTH,
    PARAMETER_BYTES,
    SPARSE_READ_FAST,
    SPARSE_READ_SLOWLY,
    SPARSE_SORT_BYTES,
    SPARSE_SUMMED_FAST,
    SPARSE_TRAINED_FAST,
    SPARSE_TRAINED_SLOWLY,
)
from stepscope.registers.policy.findings import WORTH_A_FINDING
from stepscope.registers.policy.useless_work import (
    DENSE_ROWS_LEAST,
    DENSE_ROWS_LEAST_ON_HOST,
    DENSE_TIMES_COLUMNS,
    MOSTLY_ZEROS,
    NEIGHBOURS_LEAST,
    NEIGHBOURS_MOST,
    UNSURE_ZEROS,
)
from stepscope.units import times

_COUNTED_TITLE = "Products multiply by a huge matrix that is mostly zeros"


@dataclass(frozen=True)
class _Sampled:
    """The shares of entries that are not zero in matrices of one size, and the bytes of an entry."""

    least: float
    most: float
    item_bytes: int


def find(case: Case) -> Finding | None:
    """A matrix of n × n, as of the edges of a graph, times one with few columns; no product makes an n × n matrix."""
    if case.device is None:
        return _on_host(case)
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
    known = rows.join(table, on="side", maintain_order="left")
    kept = known.select("event", most=(row_ns * pl.col("fewest") / fast).clip(upper_bound=1.0))
    sorting = _sorting(case, sampled) if _trains_in_torch(case) else pl.lit(0.0)
    # With few columns the sort takes longer than the way that sorts nothing: either may be the worse one.
    ways = (row_ns * pl.col("fewest") / fast + sorting, row_ns * pl.col("most") / slow)
    left = known.select(
        "event", "side", "time_ns", least=pl.min_horizontal(*ways), most=pl.max_horizontal(*ways)
    )
    expected = (pl.col("least") * pl.col("most")).sqrt()
    left = left.filter(expected < 1)
    saved = left.select((pl.col("time_ns") * (1 - expected)).sum()).item() / case.step_count
    if left.is_empty() or saved < WORTH_A_FINDING * case.step_ns:
        return None
    side = int(left["side"].max() or 0)  # type: ignore[arg-type]
    share = sampled[side].most
    why = _why(side, share)
    chosen = left.select("event", "least", pl.col("most").clip(upper_bound=1.0))
    evidence: dict[str, Any] = {"side": side, "nonzero": share}
    if _trains_in_torch(case):
        why += _with_transpose(case, kept.filter(pl.col("event").is_in(chosen["event"].implode())), evidence)
    found = of_kernels(case, RULE, chosen, why, evidence=evidence, title=_COUNTED_TITLE, spread=OF_BOUNDS)
    return found and msgspec.structs.replace(found, certainty=1.0)


def _trains_in_torch(case: Case) -> bool:
    return case.trace.info.framework == "pytorch" and case.workload != INFERENCE


def _sorting(case: Case, sampled: dict[int, _Sampled]) -> pl.Expr:
    """What sorting the entries takes of each product's time: autograd transposes the matrix again in each backward pass.

    A product of the forward pass has one of the backward pass, so that each takes half of that.
    """
    entries = {side: side * side * each.least for side, each in sampled.items()}
    each = pl.col("side").replace_strict(entries, return_dtype=pl.Float64) * SPARSE_SORT_BYTES / 2
    rate = case.peaks.bytes_per_s / 1e9 if case.peaks and case.peaks.bytes_per_s else float("inf")
    return each / rate / pl.col("time_ns")


def _with_transpose(case: Case, kept: pl.DataFrame, evidence: dict[str, Any]) -> str:
    """What is gained at most if nothing is sorted, since the transposed matrix is kept; nothing where no replay can say."""
    if not case.replay_fits:
        return ""
    faster = shorten_kernels(case, kept.with_columns(least="most"))
    gain = case.gain(
        left_by_replay(case, faster), code=RULE.code, work=least_left(case, faster), spread=OF_BOUNDS
    )
    evidence["with_transpose"] = gain.speedup.high
    return f" With a CSR matrix of its transpose for the backward pass, up to {times(gain.speedup.high)}×."


def _why(side: int, share: float) -> str:
    return (
        f"multiplies by a matrix of {side:,} × {side:,} that is mostly zeros: 1 of {round(1 / share):,} entries is not zero "
        f"({share * side:.3g} in a row), as counted in a sample of its rows after the recording."
    )


def _on_host(case: Case) -> Finding | None:
    """Where a CPU computes the products: by the count alone, since layers have weights of such sizes, too."""
    zeros = {side: each.most for side, each in _sampled(case).items() if each.most <= MOSTLY_ZEROS}
    if not zeros or case.trace.info.framework != "pytorch":
        return None
    products = case.ops.filter(are_products(case.ops["name"]), pl.col("step").is_not_null())
    calls = products.select("event", shapes=pl.col("shapes").cast(pl.String)).drop_nulls()
    rows = calls.join(_squares(calls["shapes"].unique(), DENSE_ROWS_LEAST_ON_HOST), on="shapes")
    rows = rows.filter(pl.col("side").is_in(list(zeros)))
    share = pl.col("side").replace_strict(zeros, return_dtype=pl.Float64)
    chosen = rows.select(
        "event",
        "side",
        least=share * HOST_SPARSE_ENTRY_FAST,
        most=share * HOST_SPARSE_ENTRY_SLOWLY,
    ).filter((pl.col("least") * pl.col("most")).sqrt() < 1)
    chosen = chosen.with_columns(pl.col("most").clip(upper_bound=1.0))
    times = chosen.join(computed_ns(case, chosen["event"]), left_on="event", right_on="op")
    if times.is_empty():
        return None
    side = int(times.sort("ns", descending=True)["side"][0])
    evidence = {"side": side, "nonzero": zeros[side]}
    found = of_host_ops(case, RULE, chosen, _why(side, zeros[side]), evidence, _COUNTED_TITLE, OF_BOUNDS)
    return found and msgspec.structs.replace(found, certainty=1.0)


def _speeds(case: Case) -> tuple[float, float]:
    """How fast rows are read at worst and at best, as a share of the memory's bandwidth.

    In PyTorch what training takes depends on the fix: a message along each edge is written to memory, and coordinates are read
    slowly, while compressed rows are as fast as in inference, but for what autograd sorts.
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
    return calls.join(
        _squares(calls["shapes"].unique(), DENSE_ROWS_LEAST), on="shapes", maintain_order="left"
    )


def _squares(texts: pl.Series, rows_least: int) -> pl.DataFrame:
    """shapes, side of products with such a matrix."""
    sides = {text: found for text in texts.drop_nulls() if (found := _sides(text))}
    made = {rows for rows, _, columns in sides.values() if rows == columns}
    squares = {
        text: rows
        for text, (rows, inner, columns) in sides.items()
        if rows == inner and rows not in made and rows >= rows_least
        if columns * DENSE_TIMES_COLUMNS <= rows
    }
    return pl.DataFrame(
        {"shapes": list(squares), "side": list(squares.values())},
        schema={"shapes": pl.String, "side": pl.Int64},
    )


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
    turn_without_device=98,
    page="kernels",
    certainty=UNSURE_ZEROS,
    owns="products with a square left matrix that has 4096 rows or more and at least 8 times as many as the other has columns, if no product of the step makes a matrix of that size; without a device, ops of PyTorch from 1024 rows, if the capture counted the zeros",
    change="each row of the result reads 8 to 150 rows of the other matrix at 60 % of memory bandwidth, as a sparse product does. If the capture counted the entries that are not zero, it reads as many rows as there are in its row of the matrix: at 55 to 85 % of memory bandwidth in JAX, and up to 190 % in PyTorch (rows stay in the cache), but 6 to 70 % if the job trains, by the way that the backward pass takes, in which the entries are sorted again at best (a matrix of its transpose that is kept saves that, too: the detail says how much that brings at most); nothing is found if the matrix is not mostly zeros. Without a device, an entry that is not zero takes 5 (compressed rows) to 120 (coordinates) times as long as one of the dense matrix",
    fix={
        "pytorch": "Keep only what is not zero of a matrix that is mostly zeros (an adjacency matrix): a sparse matrix (A.to_sparse_csr() @ x), or gather the rows of the edges and index_add_ (scatter) them, which writes a message for each edge and is slower. In training, a torch.autograd.Function that multiplies by a CSR matrix of the transpose in its backward pass brings more, since autograd sorts the entries each time.",
        "jax": "Keep only what is not zero of a matrix that is mostly zeros (an adjacency matrix): gather the rows of the edges and sum them with jax.ops.segment_sum, or jax.experimental.sparse.BCOO.",
        ANY: "Keep only what is not zero of a matrix that is mostly zeros (an adjacency matrix): a sparse product, or gather and scatter.",
    },
    find=find,
)
