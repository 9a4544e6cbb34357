"""Traced functions of TensorFlow that a step on a CPU runs again and again: what it may save to run them less, or on less."""

from __future__ import annotations

import re
from dataclasses import replace

import polars as pl

from stepscope.analysis.account.host_timeline import within
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.promise import saving
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.spread import OF_BOUNDS
from stepscope.analysis.host.eager_calls import FUNCTION_CALL
from stepscope.analysis.host.function_runs import FunctionRuns, find_repeated_function
from stepscope.names import short_name
from stepscope.registers.policy.findings import LOOP_LEAST
from stepscope.registers.policy.repeated_work import PREFIX_LEAST, TOKEN_RUN_LEAST, TOKEN_RUN_MOST

_TITLE = "A function runs many times per step: could it run once, on a batch?"
PREFIX_CODE = "recomputed-prefix"
PREFIX_TITLE = "Every new token computes all tokens before it again"
PREFIX_FIX = {
    "pytorch": "Keep the keys and values of the tokens before (a cache, of a fixed size if possible), and give the model the new token alone.",
    "tensorflow": "Keep what the tokens before left behind, and give the model the new token alone: the state of a recurrent layer (return_state=True, initial_state=…), or the keys and values of attention.",
    "jax": "Keep the keys and values of the tokens before in arrays of a fixed size: one program computes them for the prompt, and another gets the new token alone, writes its keys and values by jax.lax.dynamic_update_slice, and returns the arrays (donate_argnums, or the carry of a lax.scan).",
    ANY: "Keep the keys and values of the tokens before, and give the model the new token alone.",
}
_BETWEEN = ("dispatch", "unexplained")


def find_function_loop(case: Case, rule: Rule[Case]) -> Finding | None:
    """A finding of this rule about runs that are alike, or `recomputed-prefix` about runs over a sequence that grows.

    When that has its own turn, the findings about single functions and launches own the time of these runs.
    """
    found = find_repeated_function(case.trace)
    if found is None or found.changes_state:
        return None
    tokens = found.tokens
    if tokens is not None and tokens >= PREFIX_LEAST:
        prefix = replace(rule, code=PREFIX_CODE, title=PREFIX_TITLE, fix=PREFIX_FIX)
        return _of_prefix(case, prefix, found, tokens)
    return _of_equal_runs(case, rule, found) if found.are_equal else None


def _of_prefix(case: Case, rule: Rule[Case], found: FunctionRuns, tokens: float) -> Finding | None:
    """Each run goes over one item only; a first one over those that are there from the beginning stays."""
    free = case.free(pl.col("part").is_in(["host_compute", *_BETWEEN]))
    owned = free.filter(within(free["start_ns"], found.runs["start_ns"], found.runs["end_ns"] - 1))
    ns = case.per_step(owned)
    if ns < LOOP_LEAST * case.step_ns:
        return None
    case.claim(owned)
    share, once = ns / case.step_ns, 1 / found.per_step
    least, mid, most = (
        1 - share + share * min(1.0, once + times / tokens)
        for times in (TOKEN_RUN_LEAST, (TOKEN_RUN_LEAST * TOKEN_RUN_MOST) ** 0.5, TOKEN_RUN_MOST)
    )
    detail = (
        f"{case.of_step(ns)} in {_name(found)}, which runs {found.per_step:,.0f} times per step, each time over one item more: "
        f"it computes all of about {tokens:,.0f} items again to get one more."
    )
    evidence = {
        "names": case.top_names(owned),
        "tokens": round(tokens),
        "runs_per_step": round(found.per_step),
        "estimate": "account",
    }
    return saving(case, rule, ns, Interval(least, mid, most), detail, evidence)


def _of_equal_runs(case: Case, rule: Rule[Case], found: FunctionRuns) -> Finding | None:
    """At best, one run on a batch dispatches what one of them does; at worst each needs the one before."""
    owned = _between_ops(case, found)
    ns = case.per_step(owned)
    if ns < LOOP_LEAST * case.step_ns:
        return None
    case.claim(owned)
    best = 1 - ns / case.step_ns * (1 - 1 / found.per_step)
    detail = (
        f"{case.of_step(ns)} passes between the ops while the step runs {_name(found)} {found.per_step:,.0f} times, "
        "with the same ops each time. Does any run need the result of the one before? The profile does not show it."
    )
    evidence = {
        "names": case.top_names(owned),
        "runs_per_step": round(found.per_step),
        "estimate": "account",
    }
    left = Interval(best, best**0.5, 1.0)
    return saving(case, rule, ns, left, detail, evidence, _TITLE, spread=OF_BOUNDS)


def _between_ops(case: Case, found: FunctionRuns) -> pl.DataFrame:
    """What passes from the first run of a step to its last, but for the ops themselves."""
    loops = found.runs.group_by("step", maintain_order=True).agg(
        pl.col("start_ns").min(), pl.col("end_ns").max()
    )
    waits = (pl.col("part") == "host_compute") & pl.col("name").cast(pl.String).str.contains(FUNCTION_CALL)
    free = case.free(pl.col("part").is_in(_BETWEEN) | waits)
    return free.filter(within(free["start_ns"], loops["start_ns"], loops["end_ns"] - 1))


def _name(found: FunctionRuns) -> str:
    """The function's own name, without what the runtime puts around it."""
    return short_name(re.sub(r"_\d+$", "", re.sub(FUNCTION_CALL, "", found.name)))
