"""Work that each step of PyTorch does again on a CPU: on a matrix that stays, or in calls that return what an earlier one has returned."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.dispatched import at_or_below
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.programs.host_ops import left_of_step
from stepscope.analysis.findings.promise import timed
from stepscope.analysis.findings.rule import Rule
from stepscope.analysis.matrices import sampled_matrices
from stepscope.analysis.repeats.constant_work import ConstantWork, find_constant_work
from stepscope.registers.policy.repeated_work import REPEATED_WORK_LEAST
from stepscope.registers.policy.useless_work import MOSTLY_ZEROS

_PARTS = ("host_compute", "dispatch")
_TITLE = "Every step computes the same from a matrix that stays"
_FIX = "Compute it once, before the first step (a normalised adjacency matrix, for one), keep the result, and give it to the layers."


def find_constant_matrix(case: Case, rule: Rule[Case]) -> Finding | None:
    """A finding about the matrix whose ops take most of the step, if the capture has found it after the recording.

    One of which most is not zero may be new in each step: only ops that a step calls several times are needless, at worst all but the first.
    """
    steps = case.lengths["step"].to_list()
    best: tuple[int, int, float, ConstantWork, pl.DataFrame] | None = None
    for side, share in _sides(case).items():
        work = find_constant_work(case.trace, steps, side)
        if work is None or (work.times < 2 and share > MOSTLY_ZEROS):
            continue
        inside = at_or_below(case.trace.events, pl.Series(work.events, dtype=pl.UInt32))
        owned = case.free(pl.col("part").is_in(_PARTS), pl.col("named_by").is_in(inside.implode()))
        ns = case.per_step(owned)
        if ns >= REPEATED_WORK_LEAST * case.step_ns and (best is None or ns > best[0]):
            best = ns, side, share, work, owned
    if best is None:
        return None
    ns, side, share, work, owned = best
    often = "once" if work.times == 1 else f"{work.times:,} times"
    detail = (
        f"{case.of_step(ns)} computes the same in each step, {often}: these ops are given only a matrix of {side:,} × {side:,}, "
        "which nothing in the steps changes, and what they make of it."
    )
    most = 1.0 if work.unsure else 1 / work.times if share > MOSTLY_ZEROS else 0.0
    left = left_of_step(case, owned.with_columns(least=pl.lit(0.0), most=pl.lit(most)))
    evidence = {"side": side, "calls_per_step": work.times}
    found = timed(case, rule, owned, case.plan, detail, evidence, _TITLE, accounted=left)
    found.fix = _FIX
    return found


def _sides(case: Case) -> dict[int, float]:
    """The sides of square matrices that were there after the recording, and the largest share of entries that are not zero."""
    found: dict[int, float] = {}
    for each in sampled_matrices(case.trace):
        if each.framework == "torch" and each.shape[0] == each.shape[1]:
            found[each.shape[0]] = max(each.nonzero, found.get(each.shape[0], 0.0))
    return found
