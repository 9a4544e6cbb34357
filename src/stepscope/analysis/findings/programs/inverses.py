"""What programs would take that factor a positive definite matrix by Cholesky instead of LU, and solve for what is needed instead of inverting it."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.programs.parts import part_of_program
from stepscope.analysis.xla.factors.inverses import Factored, factored_matrices
from stepscope.analysis.xla.hlo_module import read_module
from stepscope.analysis.xla.ops import programs_that_ran
from stepscope.lazy import dataclass
from stepscope.registers.calibration.solvers import (
    CHOLESKY_OF_LU_BEST,
    CHOLESKY_OF_LU_WORST,
    CHOLESKY_OPERATIONS,
    CHOLESKY_ROW_BEST_NS,
    CHOLESKY_ROW_WORST_NS,
    SOLVE_BLOCK_LEAST,
    SOLVE_ROW_BEST_NS,
    SOLVE_ROW_WORST_NS,
    SOLVE_VECTOR_ROW_BEST_NS,
    SOLVE_VECTOR_ROW_WORST_NS,
)
from stepscope.registers.policy.useless_work import INVERSE_LEFT_MOST

_FACTORS = b"getrf"


@dataclass(frozen=True)
class Solvable:
    """`work`: event, least and most: what is left of it in all; `matrix`: that which takes longest."""

    work: pl.DataFrame
    matrix: Factored


def solvable_work(case: Case) -> Solvable | None:
    """The work of all such matrices, where less is left."""
    known = {hlo: name for name, _, hlo in programs_that_ran(case.trace) if _FACTORS in hlo}
    programs = [name for name, _, _ in programs_that_ran(case.trace)]
    found = [
        (work, matrix)
        for hlo, name in known.items()
        if programs.count(name) == 1  # programs of one name have other instructions of the same names
        for matrix in factored_matrices(read_module(hlo))
        if (work := _work_of(case, name, hlo, matrix)) is not None
    ]
    if not found:
        return None
    _, matrix = max(found, key=lambda each: each[1].size)
    return Solvable(pl.concat([work for work, _ in found]).unique("event", keep="first"), matrix)


def _work_of(case: Case, name: str, hlo: bytes, matrix: Factored) -> pl.DataFrame | None:
    """event, least, most of the work that the matrix causes; None where no less is to be done."""
    names = matrix.names if matrix.is_definite else matrix.solving | matrix.around
    work = part_of_program(case, name, hlo, names)
    times = work.join(case.trace.events.select(event="id", ns="dur_ns"), on="event", maintain_order="left")
    # The last run may be cut off, of which some instructions have part of their work.
    runs = times.group_by("instruction", "run").agg(pl.col("ns").sum())
    usual = dict(runs.group_by("instruction").agg(pl.col("ns").median()).iter_rows())
    lu, solving = (sum(usual.get(each, 0.0) for each in part) for part in (matrix.lu, matrix.solving))
    whole = sum(usual.values())
    if (matrix.is_definite and lu <= 0) or (matrix.columns and solving <= 0) or whole <= 0:
        return None
    least, most = _left_ns(matrix, lu, solving)
    if (least * most) ** 0.5 >= INVERSE_LEFT_MOST * whole:
        return None
    return work.select("event", least=pl.lit(min(1.0, least / whole)), most=pl.lit(min(1.0, most / whole)))


def _left_ns(matrix: Factored, lu: float, solving: float) -> tuple[float, float]:
    """At best and at worst, given how long the decomposition takes, and both solves of the inverse."""
    if not matrix.columns:
        return CHOLESKY_OF_LU_BEST * lu, CHOLESKY_OF_LU_WORST * lu
    whole = solving / 2
    best, worst = _solve_ns(matrix, whole)
    if not matrix.is_definite:
        return 2 * best, 2 * worst
    least = _cholesky_ns(matrix.size, whole, SOLVE_ROW_WORST_NS, CHOLESKY_ROW_BEST_NS)
    most = _cholesky_ns(matrix.size, whole, SOLVE_ROW_BEST_NS, CHOLESKY_ROW_WORST_NS)
    if not matrix.is_squared:
        return least + 2 * best, most + 2 * worst
    # The square of half a solve; a vector that the product is also multiplied by may be solved for on its own.
    return least + best, most + worst + 2 * SOLVE_VECTOR_ROW_WORST_NS * matrix.size


def _solve_ns(matrix: Factored, whole: float) -> tuple[float, float]:
    """Of one triangular solve for the columns that are needed, where one with a column for each row takes `whole`."""
    share = min(1.0, matrix.columns / matrix.size)
    is_block = matrix.columns >= SOLVE_BLOCK_LEAST
    fast = SOLVE_ROW_BEST_NS if is_block else SOLVE_VECTOR_ROW_BEST_NS
    slow = SOLVE_VECTOR_ROW_WORST_NS if matrix.columns == 1 else SOLVE_ROW_WORST_NS
    best, worst = (
        min(whole, row * matrix.size + share * max(0.0, whole - row * matrix.size)) for row in (fast, slow)
    )
    return best, worst


def _cholesky_ns(size: int, solve_ns: float, solve_row_ns: float, row_ns: float) -> float:
    """A third of the operations of a solve with a column for each row, at its pace, and what each row costs."""
    return row_ns * size + CHOLESKY_OPERATIONS * max(0.0, solve_ns - solve_row_ns * size)
