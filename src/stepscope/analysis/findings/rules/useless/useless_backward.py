"""The backward pass goes on into layers whose gradients no optimizer uses."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.compute.unused_gradients import NODE, find_named, unused_nodes
from stepscope.analysis.compute.unused_weights import unused_weight_kernels, unused_weight_ops
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.device_work import free_of_work, without_work
from stepscope.analysis.findings.dispatched import at_or_below, without_dispatch
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.programs.parts import part_of_program
from stepscope.analysis.findings.promise import left_as_a_whole, timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.frozen_facts import noted_zeros
from stepscope.analysis.replay.plan import Plan
from stepscope.analysis.serving.workload import INFERENCE
from stepscope.analysis.xla.frozen_weights import FrozenWork, frozen_weights
from stepscope.analysis.xla.hlo_module import read_module
from stepscope.analysis.xla.ops import programs_that_ran
from stepscope.names import short_name
from stepscope.registers.calibration.launches import WITHOUT_GRAPH_LEAST, WITHOUT_GRAPH_MOST
from stepscope.registers.policy.findings import MAJORITY, TOP_NAMES, WORTH_A_FINDING

_OF_GRADIENTS = b"transpose(jvp"


def find(case: Case) -> Finding | None:
    """Nodes of autograd that run after the last parameter of the optimizer has its gradient, and what makes gradients of other weights before."""
    if case.has_found(RULE.code):
        return None  # by layers that a later pass goes through again
    if case.runs_programs:
        return _in_programs(case)
    nodes = unused_nodes(case.trace)
    weights = unused_weight_ops(case.trace)
    if case.workload == INFERENCE:
        weights = weights.clear()
    whole = weights.filter(pl.col("only").is_null())["id"]
    inside = at_or_below(case.trace.events, pl.concat([nodes, whole.rename("event")]))
    if case.device is None:
        return _on_host(case, inside)
    kernels = case.trace.kernels.filter(pl.col("op").is_in(inside.implode()))["event"]
    kernels = pl.concat([kernels, unused_weight_kernels(case.trace, weights)]).unique()
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


def _in_programs(case: Case) -> Finding | None:
    """A program of JAX that makes gradients of weights which it returns as they were."""
    if case.trace.info.framework != "jax" or case.device is None or case.is_tpu:
        return None
    codes = {name: hlo for name, _, hlo in programs_that_ran(case.trace) if _OF_GRADIENTS in hlo}
    zeros = frozenset(noted_zeros(case.trace))
    for name, hlo in codes.items():
        work = frozen_weights(read_module(hlo), zeros)
        if work is None:
            continue
        chosen = _left_of(case, name, hlo, work)
        owned = free_of_work(case, chosen.filter(pl.col("most") == 0)["event"])
        ns = case.per_step(owned)
        if ns >= WORTH_A_FINDING * case.step_ns:
            return timed(case, RULE, owned, without_work(case, chosen), _why(case, ns, work), _evidence(work))
    return None


def _left_of(case: Case, name: str, hlo: bytes, work: FrozenWork) -> pl.DataFrame:
    """event, least, most: nothing is left of what only frozen weights need; at best, others write what is needed alone."""
    gone = part_of_program(case, name, hlo, work.names).select("event", least=pl.lit(0.0), most=pl.lit(0.0))
    shorter = [
        part_of_program(case, name, hlo, [one]).select("event", least=pl.lit(share), most=pl.lit(1.0))
        for one, share in work.shorter.items()
    ]
    return pl.concat([gone, *shorter]).unique("event", keep="first", maintain_order=True)


def _why(case: Case, ns: int, work: FrozenWork) -> str:
    if not work.weights:
        return f"{case.of_step(ns)} computes what the program then multiplies by zero."
    several = "" if len(work.weights) == 1 else f" and {len(work.weights) - 1:,} others"
    why = f": {short_name(work.scale)} is zero" if work.scale else ""
    return (
        f"{case.of_step(ns)} computes gradients, and the optimizer's state, of weights that the program returns as they were"
        f" ({short_name(work.weights[0])}{several}){why}."
    )


def _evidence(work: FrozenWork) -> dict[str, object]:
    found: dict[str, object] = {"weights": len(work.weights), "arguments": list(work.weights[:TOP_NAMES])}
    return found | ({"scale": work.scale} if work.scale else {})


def _detail(case: Case, ns: int) -> str:
    return f"{case.of_step(ns)} computes gradients of parameters that the optimizer which follows does not update."


RULE: Rule[Case] = Rule(
    code="useless-backward",
    title="Gradients are computed that nothing uses",
    turn=177,
    turn_without_device=106,
    page="ops",
    owns="kernels of the backward pass after the last gradient that the next optimizer step uses; those of layers that the pass goes through again after it; work that computes gradients of weights whose shapes the optimizer does not update, or adds them up, if they are most of all gradients. A learning rate of zero counts as no update, where the capture found one. Of programs of JAX, what is needed only for gradients and optimizer state of weights that are returned as they were given, since their update is multiplied by zero or dropped. Without a device, the ops of the same part of the backward pass",
    change="they are neither launched nor run; if they are most of the backward pass, the rest is dispatched in 75 to 90 % of its time, without autograd's bookkeeping. In a program of JAX, kernels with several results write, at best, only those still needed",
    fix={
        "pytorch": "Stop the backward pass where training ends: requires_grad_(False) on frozen layers (a learning rate of 0 does not stop it), torch.no_grad() around a teacher or target network, detach() on what a loss must not reach (in a GAN: discriminator(fake.detach())).",
        "jax": "Differentiate only what is trained: gradients and optimizer state of the trained part of the parameters alone, the rest as another argument (a learning rate of 0 or a mask behind the optimizer does not stop the backward pass), or jax.lax.stop_gradient on the rest.",
        ANY: "Compute gradients only of what is trained.",
    },
    find=find,
)
