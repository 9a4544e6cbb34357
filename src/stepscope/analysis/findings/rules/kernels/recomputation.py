"""Activations are computed again in the backward pass, though there is memory to keep them."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.compute.repeated import repeated_ops
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.programs.host_ops import of_host_ops
from stepscope.analysis.findings.promise import timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.spread import OF_KEPT
from stepscope.analysis.replay.plan import Plan
from stepscope.registers.policy.device_findings import MEMORY_TO_KEEP_ACTIVATIONS
from stepscope.registers.policy.findings import WORTH_A_FINDING
from stepscope.units import size

_AGAIN = "computes activations again that checkpointing dropped."


def find(case: Case) -> Finding | None:
    """Kernels that run again what the forward pass has computed."""
    if case.device is None:
        ops = repeated_ops(case.trace, case.ops).select("event", least=pl.lit(0.0), most=pl.lit(0.0))
        return of_host_ops(case, RULE, ops, _AGAIN)
    repeated = case.compute.repeated
    again = repeated["event"]
    owned = case.free(pl.col("part") == "compute", pl.col("named_by").is_in(again.implode()))
    ns = case.per_step(owned)
    free = _free_bytes(case)
    if ns < WORTH_A_FINDING * case.step_ns or (free is not None and free <= 0):
        return None
    room = f" {size(free)} of the device's memory were never used." if free else ""
    detail = f"{case.of_step(ns)} {_AGAIN}{room}"
    is_compiled = bool((repeated["how"] == "program").any())
    return timed(
        case,
        RULE,
        owned,
        _kept(case, repeated),
        detail,
        {"free_bytes": free},
        spread=OF_KEPT if is_compiled else None,
    )


def _kept(case: Case, repeated: pl.DataFrame) -> Change:
    """The kernels neither run nor are they launched; in a compiled program they go at best.

    There a fused kernel that is named after rematerialised work may compute gradients as well, and what is kept is written and
    read, which fusion saves where it is computed again: a program can become slower without checkpoints.
    """
    surely = repeated.filter(pl.col("how").ne_missing("program"))
    smallest, largest = (
        _not_launched(case.plan.with_device(gone), gone)
        for gone in (pl.col("event").is_in(each["event"].implode()) for each in (surely, repeated))
    )
    return Change(smallest, largest)


def _not_launched(plan: Plan, kernels: pl.Expr) -> Plan:
    items = plan.items.filter(kernels)["item"].implode()
    return plan.with_host(pl.col("item").is_in(items) & (pl.col("cause") == "dispatch"))


def _free_bytes(case: Case) -> int | None:
    """Memory of the device that a larger peak could use, where that is known; 0 if there is too little."""
    for one in case.memory:
        if one.device_kind != "cpu" and one.capacity_bytes and one.peak_bytes:
            free = one.capacity_bytes - one.peak_bytes
            return free if free >= MEMORY_TO_KEEP_ACTIVATIONS * one.capacity_bytes else 0
    return None


RULE: Rule[Case] = Rule(
    code="recomputation",
    title="Activations are computed twice",
    turn=175,
    turn_without_device=103,
    page="ops",
    owns="kernels (without a device, ops of PyTorch) below a checkpoint, or products and attention of the forward pass that run again on autograd's thread; in a compiled program, those of rematerialised ops",
    change="they are neither launched nor run; in a compiled program only at best, since what is kept has to be written and read, and a fused kernel may compute gradients as well",
    fix={
        "pytorch": "Keep the activations: remove torch.utils.checkpoint (gradient_checkpointing), or checkpoint only some layers, as far as memory allows.",
        "jax": "Keep the activations: remove jax.checkpoint (jax.remat), or choose a policy that saves products (jax.checkpoint_policies.dots_saveable).",
        ANY: "Keep the activations instead of computing them twice, as far as memory allows.",
    },
    find=find,
)
