"""One op other than a matrix product takes much of the step, far from what its bytes need."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.xla.branches import selected_work
from stepscope.analysis.xla.hlo_module import read_module
from stepscope.analysis.xla.ops import programs_that_ran
from stepscope.registers.policy.compute import AT_ITS_BOUND, SLOW_OP_LEAST

# What sorts, searches, scatters or solves: what it costs depends on the data and on the way that was chosen.
_CHOSEN = (
    r"(?i)sort|top_?k|cum(sum|prod|max|min|logsumexp)|unique|nonzero|index|gather|scatter|embedding|multinomial|histogram|histc"
    r"|bincount|searchsorted|bucketize|cdist|pdist|linalg|svd|_qr|eig|cholesky|solve|inverse|lu_|fft|grid_sampl|interpolat|upsampl|ctc_loss|unfold|col2im"
)
_BOTH_BRANCHES = "Its result is kept only where a condition holds, but it is computed in every turn of a loop: both branches run, and one is selected."
_BRANCH = "Keep the condition the same for the whole batch, so that lax.cond remains a branch: under jax.vmap, do not map what it depends on, such as a step counter (in_axes=None)."


def find(case: Case) -> Finding | None:
    """The longest of them, if that is enough to look at; there may be no faster way, so that nothing is promised."""
    if case.device is None:
        return None
    kernels = _named(case)
    chosen = kernels.filter(pl.col("op").str.contains(_CHOSEN))
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
    case.claim(owned)
    detail, fix = (
        f"{case.of_step(ns)} is spent in {longest['op']}.",
        RULE.fix_for(case.trace.info.framework, case.has_device),
    )
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


def _is_selected(case: Case, kernels: pl.Series) -> bool:
    """Whether a loop of a compiled program computes this only for a value that a condition may throw away."""
    if not case.runs_programs:
        return False
    names = set(case.trace.events["name"].gather(kernels).cast(pl.String).unique())
    codes = {hlo for _, _, hlo in programs_that_ran(case.trace) if b"select" in hlo and b"while" in hlo}
    return any(names <= selected_work(read_module(hlo)) for hlo in codes)


def _named(case: Case) -> pl.DataFrame:
    """The kernels with their op: that of the program where a compiled one runs them, which may launch all of them at once."""
    kernels = case.compute.kernels.filter(pl.col("time_ns") > 0).with_columns(pl.col("op").cast(pl.String))
    if not case.runs_programs:
        return kernels
    ops = case.ops.select("event", instruction=pl.col("name").cast(pl.String)).unique("event")
    known = kernels.join(ops, on="event", how="left", maintain_order="left")
    return known.with_columns(op=pl.coalesce("instruction", "op"))


RULE: Rule[Case] = Rule(
    code="slow-op",
    title="One op takes much of the step",
    turn=214,
    class_="advice",
    page="ops",
    owns="kernels of the longest op that sorts, searches, looks up, scatters or solves, from a fifth of the step on, if they are far from their bound",
    change="nothing: whether there is a faster way depends on the data",
    fix={
        "pytorch": "Look for a cheaper way to the same result: topk instead of a full sort, F.embedding or index_select instead of x[index] (whose gradient sorts), index_add_ with sorted or fewer indices, results that do not change computed once before the loop, float32 instead of float64.",
        "jax": "Look for a cheaper way to the same result: jax.lax.top_k instead of a sort, segment_sum with indices_are_sorted=True, results that do not change computed once before the loop.",
        ANY: "Look for a cheaper way to the same result, or compute it once, if it does not change.",
    },
    find=find,
)
