"""The backward pass goes on into layers whose gradients no optimizer uses."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.compute.unused_gradients import NODE, find_named, unused_nodes
from stepscope.analysis.compute.unused_weights import unused_products
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.dispatched import at_or_below, without_dispatch
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import left_as_a_whole, timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.replay.plan import Plan
from stepscope.analysis.serving.workload import INFERENCE
from stepscope.registers.calibration.launches import WITHOUT_GRAPH_LEAST, WITHOUT_GRAPH_MOST
from stepscope.registers.policy.findings import MAJORITY, WORTH_A_FINDING


def find(case: Case) -> Finding | None:
    """Nodes of autograd that run after the last parameter of the optimizer has its gradient."""
    if case.has_found(RULE.code):
        return None  # by layers that a later pass goes through again
    nodes = unused_nodes(case.trace)
    inside = at_or_below(case.trace.events, nodes)
    if case.device is None:
        return _on_host(case, inside)
    kernels = case.trace.kernels.filter(pl.col("op").is_in(inside.implode()))["event"]
    if kernels.is_empty() and case.workload != INFERENCE:
        kernels = unused_products(case.trace)
        inside = case.trace.kernels.filter(pl.col("event").is_in(kernels.implode()))["op"]
    owned = case.free(pl.col("part") == "compute", pl.col("named_by").is_in(kernels.implode()))
    ns = case.per_step(owned)
    if ns < WORTH_A_FINDING * case.step_ns:
        return None
    gone = case.plan.with_device(pl.col("event").is_in(kernels.implode()))
    change = without_dispatch(without_engine(case, gone, kernels), inside)
    if len(nodes) > MAJORITY * len(find_named(case.trace, NODE)):
        change = _without_graph(change)
    return timed(case, RULE, owned, change, _detail(case, ns))


def without_engine(case: Case, gone: Plan, kernels: pl.Series) -> Change:
    """Between two gradients autograd's engine works for the next one, while the call of backward waits: this goes with the kernel that it comes to."""
    items = case.plan.items.filter(pl.col("event").is_in(kernels.implode()))["item"]
    before = pl.col("item").is_in(items.implode()) & (pl.col("cause") == "dispatch")
    frames = case.trace.events["kind"] == "python"
    alone = gone.with_host(before & pl.lit(frames.gather(gone.host["event"]).fill_null(False)))
    return Change(alone, alone)


def _without_graph(change: Change) -> Change:
    """Most layers are frozen, then: their forward pass need not note how to compute gradients."""
    dispatch = pl.col("cause") == "dispatch"
    return Change(
        change.smallest.with_host(dispatch, WITHOUT_GRAPH_MOST),
        change.largest.with_host(dispatch, WITHOUT_GRAPH_LEAST),
    )


def _on_host(case: Case, inside: pl.Series) -> Finding | None:
    """Without a device the ops of these nodes compute, on the thread that asks for gradients: all of it goes."""
    owned = case.free(pl.col("named_by").is_in(inside.implode()))
    ns = case.per_step(owned)
    if ns < WORTH_A_FINDING * case.step_ns:
        return None
    left = left_as_a_whole(case, ns)
    return timed(case, RULE, owned, case.plan, _detail(case, ns), accounted=left)


def _detail(case: Case, ns: int) -> str:
    return f"{case.of_step(ns)} computes gradients of parameters that the optimizer which follows does not update."


RULE: Rule[Case] = Rule(
    code="useless-backward",
    title="Gradients are computed that nothing uses",
    turn=177,
    turn_without_device=106,
    page="ops",
    owns="kernels of the backward pass after the last gradient that the next optimizer step uses; those of layers that the pass goes through again after it; otherwise, products that compute gradients of weights that the optimizer does not update. Without a device, the ops of the same part of the backward pass",
    change="they are neither launched nor run; if they are most of the backward pass, the rest is dispatched in 75 to 90 % of its time, without autograd's bookkeeping",
    fix={
        "pytorch": "Stop the backward pass where training ends: requires_grad_(False) on frozen layers, torch.no_grad() around a teacher or target network, detach() on what a loss must not reach (in a GAN: discriminator(fake.detach())).",
        "jax": "Differentiate only what is trained: jax.lax.stop_gradient on the rest, or gradients of the trained part of the parameters alone.",
        ANY: "Compute gradients only of what is trained.",
    },
    find=find,
)
