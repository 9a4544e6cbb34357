"""Kernels of decompositions and solvers: libraries run products inside them, whose precision and shapes are not the user's to choose."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case

SOLVES = (
    r"(?i)linalg_(lu|ldl|cholesky|qr|eig|svd|solve|inv|lstsq|det|slogdet|householder)|cholesky"
    r"|(^|[:/])(lu|qr|eigh?|svd|geqrf|schur|householder_product|triangular_solve|tridiagonal_solve)(_|$)"
)


def named_kernels(case: Case) -> pl.DataFrame:
    """The kernels with their op: that of the program where a compiled one runs them, which may launch all of them at once."""
    kernels = case.compute.kernels.filter(pl.col("time_ns") > 0).with_columns(pl.col("op").cast(pl.String))
    if not case.runs_programs:
        return kernels
    ops = case.ops.select("event", instruction=pl.col("name").cast(pl.String)).unique("event")
    known = kernels.join(ops, on="event", how="left", maintain_order="left")
    return known.with_columns(op=pl.coalesce("instruction", "op"))


def solver_kernels(case: Case) -> pl.Series:
    """The events of kernels inside of decompositions and solvers."""
    found: pl.Series = named_kernels(case).filter(pl.col("op").str.contains(SOLVES))["event"]
    return found
