"""One op other than a matrix product takes much of the step, far from what its bytes need."""

from __future__ import annotations

import re

import msgspec
import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.device_work import free_of_work, without_work
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.programs.inverses import solvable_work
from stepscope.analysis.findings.programs.parts import part_of_program
from stepscope.analysis.findings.promise import timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.solvers import SOLVES, named_kernels, solver_kernels
from stepscope.analysis.findings.spread import OF_BOUNDS
from stepscope.analysis.xla.branches import selected_work
from stepscope.analysis.xla.decomposed import unchanged_decompositions
from stepscope.analysis.xla.factors.inverses import Factored
from stepscope.analysis.xla.hlo_module import read_module
from stepscope.analysis.xla.ops import programs_that_ran
from stepscope.registers.policy.compute import AT_ITS_BOUND, SLOW_OP_LEAST
from stepscope.trace.lookup import is_named
from stepscope.units import duration

# What sorts, searches, scatters or solves: what it costs depends on the data and on the way that was chosen.
_CHOSEN = (
    r"(?i)sort|top_?k|cum(sum|prod|max|min|logsumexp)|unique|nonzero|index|gather|scatter|embedding|multinomial|histogram|histc"
    r"|bincount|searchsorted|bucketize|cdist|pdist|linalg|svd|_qr|eig|cholesky|solve|inverse|lu_|fft|grid_sampl|interpolat|upsampl|ctc_loss|unfold|col2im"
)
_BOTH_BRANCHES = "Its result is kept only where a condition holds, but it is computed in every turn of a loop: both branches run, and one is selected."
_BRANCH = "Keep the condition the same for the whole batch, so that lax.cond remains a branch: under jax.vmap, do not map what it depends on, such as a step counter (in_axes=None)."

_INVERTED = "A matrix is inverted for a few products"
_BY_LU = "A positive definite matrix is decomposed by LU"
_SOLVE = "Solve for what is needed instead of inverting: jnp.linalg.solve(A, y) in place of jnp.linalg.inv(A) @ y, and jnp.linalg.solve(A.T, B.T).T in place of B @ jnp.linalg.inv(A). If A is symmetric positive definite, jax.scipy.linalg.cho_factor and cho_solve are faster still."
_BY_CHOLESKY = "Factor it by Cholesky: c, low = jax.scipy.linalg.cho_factor(K) and cho_solve((c, low), y) in place of jnp.linalg.solve(K, y); the log-determinant is 2 * jnp.log(jnp.diagonal(c)).sum(), in place of jnp.linalg.slogdet(K)."
_SOLVE_DEFINITE = "Factor it by Cholesky and solve for what is needed: c, low = jax.scipy.linalg.cho_factor(K) and cho_solve((c, low), y) in place of jnp.linalg.inv(K) @ y. For a quadratic form such as a variance, one triangular solve is enough: w = jax.scipy.linalg.solve_triangular(L, B.T, lower=True) with L = jnp.linalg.cholesky(K), then (w * w).sum(0). The log-determinant is 2 * jnp.log(jnp.diagonal(c)).sum()."

_AGAIN = "decomposes a matrix again that each step is given and nothing in the recording changes"
_FACTOR_ONCE = {
    "jax": "If the matrix stays the same, factor it once before the loop: jax.scipy.linalg.lu_factor and lu_solve (cho_factor and cho_solve for symmetric positive definite ones) instead of jnp.linalg.solve or inv.",
    "pytorch": "If the matrix stays the same, factor it once before the loop: torch.linalg.lu_factor and lu_solve (torch.linalg.cholesky and torch.cholesky_solve for symmetric positive definite ones) instead of torch.linalg.solve or inv.",
    ANY: "If the matrix stays the same, factor it once before the loop.",
}
_INVERTS = "aten::linalg_inv_ex"
_SOLVE_INSTEAD = "If the inverse is only multiplied, solve instead: torch.linalg.solve(A, y) in place of torch.linalg.inv(A) @ y, and for a symmetric positive definite A torch.cholesky_solve(y, L) with L = torch.linalg.cholesky(A), whose log-determinant is 2 * L.diagonal().log().sum()."


def find(case: Case) -> Finding | None:
    """The longest of them, if that is enough to look at; there may be no faster way, so that nothing is promised."""
    kernels = named_kernels(case)
    chosen = kernels.filter(pl.col("op").str.contains(_CHOSEN) | pl.col("op").str.contains(SOLVES))
    ranked = chosen.group_by("op").agg(
        pl.col("time_ns", "ideal_ns").sum(), pl.col("event"), known=(pl.col("reason") != "unknown").all()
    )
    slow = ranked.filter(~pl.col("known") | (pl.col("ideal_ns") < AT_ITS_BOUND * pl.col("time_ns")))
    if slow.is_empty():
        return None
    longest = slow.sort("time_ns", "op", descending=[True, False]).row(0, named=True)
    mine = pl.Series(longest["event"], dtype=pl.UInt32)
    owned = case.free(pl.col("part") == "compute", pl.col("named_by").is_in(mine.implode()))
    ns = case.per_step(owned)
    if ns < SLOW_OP_LEAST * case.step_ns:
        return None
    fix = RULE.fix_for(case.trace.info.framework, case.has_device)
    if re.search(SOLVES, longest["op"]):
        fix = f"{_of_solvers(case)} {fix}"
        less = _decomposed_again(case, fix) or _solved_for_less(case)
        if less is not None:
            return msgspec.structs.replace(less, class_="time", where=case.places(owned))
    case.claim(owned)
    detail = f"{case.of_step(ns)} is spent in {longest['op']}."
    if _is_selected(case, mine):
        detail, fix = f"{detail} {_BOTH_BRANCHES}", f"{_BRANCH} {fix}"
    found = RULE.finding(
        detail,
        fix,
        evidence={"names": case.top_names(owned)},
        share=round(min(1.0, ns / case.step_ns), 4),
    )
    found.where = case.places(owned)
    return found


def _of_solvers(case: Case) -> str:
    """What to do about a decomposition or a solve, whatever the matrix."""
    framework = case.trace.info.framework or ANY
    known = _FACTOR_ONCE.get(framework, _FACTOR_ONCE[ANY])
    inverts = framework == "pytorch" and is_named(case.trace.events, _INVERTS).any()
    return f"{_SOLVE_INSTEAD} {known}" if inverts else known


def _decomposed_again(case: Case, fix: str) -> Finding | None:
    """Programs decompose a matrix which nothing in the recording changes: only what solves with its factors is needed."""
    chosen = _needless(case)
    owned = free_of_work(case, chosen["event"])
    ns = case.per_step(owned)
    if ns < SLOW_OP_LEAST * case.step_ns:
        return None
    stays = _solving(case, chosen["event"])
    op = _longest_op(case, chosen["event"])
    rest = f" Solving with the factors, which takes {duration(stays)}, remains." if stays else ""
    detail = f"{case.of_step(ns)} {_AGAIN} ({op}).{rest}"
    return msgspec.structs.replace(timed(case, RULE, owned, without_work(case, chosen), detail), fix=fix)


def _solved_for_less(case: Case) -> Finding | None:
    """Programs invert a matrix of which they need products with a few columns, or decompose by LU what Cholesky's way would do for."""
    solvable = solvable_work(case) if case.trace.info.framework == "jax" else None
    if solvable is None:
        return None
    owned = free_of_work(case, solvable.work["event"])
    ns = case.per_step(owned)
    if ns < SLOW_OP_LEAST * case.step_ns:
        return None
    matrix = solvable.matrix
    detail = f"{case.of_step(ns)} {_describe(matrix)} ({_longest_op(case, solvable.work['event'])})."
    title = _INVERTED if matrix.columns else _BY_LU
    evidence = {"rows": matrix.size, "columns": matrix.columns}
    change = without_work(case, solvable.work)
    found = timed(case, RULE, owned, change, detail, evidence, title, spread=OF_BOUNDS)
    fix = _SOLVE_DEFINITE if matrix.is_definite else _SOLVE
    return msgspec.structs.replace(found, fix=fix if matrix.columns else _BY_CHOLESKY)


def _describe(matrix: Factored) -> str:
    """What the program does with the matrix, and what it needs of it."""
    kind = "a symmetric positive definite matrix" if matrix.is_definite else "a matrix"
    if not matrix.columns:
        return f"is spent on the LU decomposition of {kind} of {matrix.size:,} rows"
    return f"is spent on the explicit inverse of {kind} of {matrix.size:,} rows, of which only products with {matrix.columns:,} {'column' if matrix.columns == 1 else 'columns'} are used"


def _needless(case: Case) -> pl.DataFrame:
    """event, least, most: the work that decomposes such matrices, and what is left of it."""
    known = {hlo: name for name, _, hlo in programs_that_ran(case.trace)} if case.runs_programs else {}
    copies = case.trace.copies.filter(pl.col("direction").cast(pl.String) == "HtoD")["bytes"].drop_nulls()
    needless = unchanged_decompositions([read_module(hlo) for hlo in known], set(copies))
    programs = list(known.values())
    found = [
        part_of_program(case, name, hlo, names)["event"]
        for (hlo, name), names in zip(known.items(), needless, strict=True)
        if names
        and programs.count(name) == 1  # programs of one name have other instructions of the same names
    ]
    events = pl.concat(found) if found else pl.Series("event", [], dtype=pl.UInt32)
    return (
        events.unique(maintain_order=True).to_frame("event").with_columns(least=pl.lit(0.0), most=pl.lit(0.0))
    )


def _longest_op(case: Case, events: pl.Series) -> str:
    mine = named_kernels(case).filter(pl.col("event").is_in(events.implode()))
    times = mine.group_by("op").agg(pl.col("time_ns").sum()).sort("time_ns", "op", descending=[True, False])
    return str(times["op"][0]) if len(times) else ""


def _solving(case: Case, needless: pl.Series) -> int:
    """Time per step of kernels of solvers that are needed all the same."""
    others = solver_kernels(case).filter(~solver_kernels(case).is_in(needless.implode()))
    staying = case.slices.filter(pl.col("part") == "compute", pl.col("named_by").is_in(others.implode()))
    return case.per_step(staying)


def _is_selected(case: Case, kernels: pl.Series) -> bool:
    """Whether a loop of a compiled program computes this only for a value that a condition may throw away."""
    if not case.runs_programs:
        return False
    names = set(case.trace.events["name"].gather(kernels).cast(pl.String).unique())
    codes = {hlo for _, _, hlo in programs_that_ran(case.trace) if b"select" in hlo and b"while" in hlo}
    return any(names <= selected_work(read_module(hlo)) for hlo in codes)


RULE: Rule[Case] = Rule(
    code="slow-op",
    title="One op takes much of the step",
    turn=214,
    class_="advice",
    page="ops",
    owns="kernels of the longest op that sorts, searches, looks up, scatters or solves, from a fifth of the step, if they are far from their bound",
    change="nothing: whether there is a faster way depends on the data. Exception: a matrix decomposition, and what is computed from it alone, disappears if the compiled program receives the matrix in every step or contains it, no program returns one of its shape, and none of its size is copied to the device; solving with the factors remains. In JAX, if only products with the inverse of a matrix of 256 rows or more are used, triangular solves with as many columns take its place; an LU decomposition of a matrix that the code shows to be symmetric positive definite (a kernel or a product with its own transpose, and a diagonal added) becomes a Cholesky decomposition, and then one solve remains at best, two at worst",
    fix={
        "pytorch": "Look for a cheaper way to the same result: topk instead of a full sort, F.embedding or index_select instead of x[index] (whose gradient sorts), index_add_ with sorted or fewer indices, results that do not change computed once before the loop, float32 instead of float64.",
        "jax": "Look for a cheaper way to the same result: jax.lax.top_k instead of a sort, segment_sum with indices_are_sorted=True, results that do not change computed once before the loop.",
        ANY: "Look for a cheaper way to the same result, or compute it once, if it does not change.",
    },
    find=find,
    needs_device=True,
)
