"""Inference in training mode: dropout still drops."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.dispatched import at_or_below, without_dispatch
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.programs.host_ops import of_host_ops
from stepscope.analysis.findings.promise import timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.serving.workload import INFERENCE
from stepscope.registers.policy.findings import WORTH_SHOWING

_DROPS = "drops activations at random, as only training should."
_DROPOUT = r"^aten::(native_)?(alpha_|feature_)?dropout_?$"


def find(case: Case) -> Finding | None:
    """Ops of dropout that launch kernels although nothing is trained."""
    if case.workload != INFERENCE or case.trace.info.framework != "pytorch":
        return None
    events = case.trace.events
    names = events["name"].unique().drop_nulls()
    wanted = names.filter(names.cast(pl.String).str.contains(_DROPOUT))
    ops = events.filter(pl.col("name").is_in(wanted.implode()), pl.col("kind") == "op")["id"]
    if ops.is_empty():
        return None
    if case.device is None:
        spared = ops.to_frame("event").with_columns(least=pl.lit(0.0), most=pl.lit(0.0))
        return of_host_ops(case, RULE, spared, _DROPS)
    inside = at_or_below(events, ops)
    kernels = case.trace.kernels.filter(pl.col("op").is_in(inside.implode()))["event"]
    named = pl.concat([inside, kernels]).implode()
    owned = case.free(pl.col("part").is_in(["compute", "dispatch"]), pl.col("named_by").is_in(named))
    ns = case.per_step(owned)
    if kernels.is_empty() or ns < WORTH_SHOWING * case.step_ns:
        return None
    gone = case.plan.with_device(pl.col("event").is_in(kernels.implode()))
    detail = f"{case.of_step(ns)} {_DROPS}"
    return timed(case, RULE, owned, without_dispatch(Change(gone, gone), inside), detail)


RULE: Rule[Case] = Rule(
    code="dropout-in-inference",
    title="Inference runs in training mode",
    turn=148,
    turn_without_device=104,
    page="ops",
    owns="kernels and dispatch of dropout in inference; without a device, the ops themselves",
    change="they are neither launched nor run",
    fix={
        "pytorch": "Call model.eval() before inference: dropout is off then, and norms use their running statistics. The results change, too: they were random.",
        ANY: "Switch dropout off in inference.",
    },
    find=find,
)
