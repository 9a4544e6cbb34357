"""Weights that a parametrization, such as weight norm, computes again in every call, in inference."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.dispatched import at_or_below, without_calls
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.serving.workload import INFERENCE
from stepscope.registers.policy.findings import WORTH_A_FINDING
from stepscope.trace.lookup import events_named
from stepscope.trace.scopes import ancestors

_COMPUTES_WEIGHTS = (
    r"torch/nn/utils/(parametrize\.py\(\d+\): get_parametrized|(weight|spectral)_norm\.py\(\d+\): __call__)$"
    r"|^aten::_weight_norm$"
)


def find(case: Case) -> Finding | None:
    """In training the weights change, and must be computed; in inference they do not. Without stacks only the op is seen."""
    if case.workload != INFERENCE or case.trace.info.framework != "pytorch":
        return None
    events = case.trace.events
    roots = events.filter(events_named(events, lambda names: names.str.contains(_COMPUTES_WEIGHTS)))["id"]
    if roots.is_empty():
        return None
    inside = at_or_below(events, roots)
    kernels = case.trace.kernels.filter(pl.col("op").is_in(inside.implode()))["event"]
    named = pl.concat([inside, kernels]).implode()
    owned = case.free(
        pl.col("part").is_in(["compute", "dispatch", "python"]), pl.col("named_by").is_in(named)
    )
    ns = case.per_step(owned)
    if ns < WORTH_A_FINDING * case.step_ns:
        return None
    changed = case.plan.with_device(pl.col("event").is_in(kernels.implode()))
    changed = without_calls(changed, case.trace, _outermost(events, roots))
    launches = len(kernels) / max(1, len(case.lengths))
    detail = f"{case.of_step(ns)} computes weights that never change, with {launches:,.0f} launches a step."
    return timed(case, RULE, owned, changed, detail, {"kernels_per_step": round(launches)})


def _outermost(events: pl.DataFrame, roots: pl.Series) -> pl.DataFrame:
    """track, start_ns, end_ns of those calls that are in no other."""
    wanted = pl.repeat(False, len(events), dtype=pl.Boolean, eager=True).scatter(roots, True)
    found = events.filter(wanted & ancestors(events, wanted).is_null())
    return found.select("track", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns"))


RULE: Rule[Case] = Rule(
    code="recomputed-weights",
    title="Weights are computed again in every call",
    turn=144,
    page="ops",
    owns="in inference, the kernels and host time of weight parametrizations (weight norm, spectral norm)",
    change="none of it remains: the whole call disappears, with its Python",
    fix={
        "pytorch": "Compute the weights once after loading: torch.nn.utils.parametrize.remove_parametrizations(module, 'weight') for each module (remove_weight_norm of old models), or run the calls inside torch.nn.utils.parametrize.cached().",
        ANY: "Compute the weights once, after loading.",
    },
    find=find,
)
