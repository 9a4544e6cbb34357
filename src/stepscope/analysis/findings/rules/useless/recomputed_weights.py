"""Weights that do not change, but are computed again in every call: by a parametrization (weight norm), or inside of a compiled program."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.device_work import free_of_work, launched_less
from stepscope.analysis.findings.dispatched import at_or_below, without_calls
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.programs.weights_alone import weights_alone
from stepscope.analysis.findings.promise import shorten_kernels, timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.serving.workload import INFERENCE
from stepscope.names import short_name
from stepscope.registers.policy.findings import WORTH_A_FINDING
from stepscope.trace.lookup import events_named
from stepscope.trace.scopes import ancestors

_COMPUTES_WEIGHTS = (
    r"torch/nn/utils/(parametrize\.py\(\d+\): get_parametrized|(weight|spectral)_norm\.py\(\d+\): __call__)$"
    r"|^aten::_weight_norm$"
)
_PREFIX = "jit_"


def find(case: Case) -> Finding | None:
    """Weights that training changes must be computed; others need not. Without stacks only the op of PyTorch is seen."""
    if case.trace.info.framework == "jax":
        return _in_programs(case)
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


def _in_programs(case: Case) -> Finding | None:
    """Kernels of compiled programs that need nothing but weights."""
    found = weights_alone(case) if not case.is_tpu else []
    if not found:
        return None
    chosen = pl.concat([one.chosen for one in found])
    owned = free_of_work(case, chosen["event"])
    ns = case.per_step(owned)
    if ns < WORTH_A_FINDING * case.step_ns:
        return None
    first = max(found, key=lambda one: len(one.chosen))
    count = round(len(chosen) / max(1, len(case.lengths)))
    inside = f", mostly in {short_name(first.scope)}," if first.scope else ""
    detail = (
        f"{case.of_step(ns)}{inside} computes in {count:,} kernels of {short_name(first.program.removeprefix(_PREFIX))} "
        "what needs only weights, and is the same in every call: casts, sums and products of them."
    )
    change = shorten_kernels(case, chosen)
    change = Change(
        launched_less(change.smallest, chosen, "most"), launched_less(change.largest, chosen, "least")
    )
    evidence: dict[str, object] = {"program": first.program, "kernels_per_step": count}
    return timed(
        case, RULE, owned, change, detail, evidence | ({"scope": first.scope} if first.scope else {})
    )


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
    owns="in inference, the kernels and host time of weight parametrizations (weight norm, spectral norm); in JAX, kernels, copies and gaps of programs that depend on nothing but weights (casts, dequantisation, merged adapters, norms of weights, other layouts): leaves of a tree of arrays of several lengths, of which nothing new arrives in the steps",
    change="none of it remains: the whole call disappears, with its Python. Of kernels in a loop over layers, which pick the weights of a layer as well, up to 70 %",
    fix={
        "pytorch": "Compute the weights once after loading: torch.nn.utils.parametrize.remove_parametrizations(module, 'weight') for each module (remove_weight_norm of old models), or run the calls inside torch.nn.utils.parametrize.cached().",
        "jax": "Compute it once after loading, in a function of its own (weights = jax.jit(prepare)(params): casts to bfloat16, merged adapters, normalised or transposed weights), and pass the result to the function that is called for each request. Weights that are kept in 8 bits to save memory take more of it then.",
        ANY: "Compute the weights once, after loading.",
    },
    find=find,
)
