"""For each slice of a tensor, the backward pass makes a gradient of the whole tensor."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.loops.slices import (
    computed_of_slices,
    dispatched_of_slices,
    parts_of_slices,
    work_of_slices,
)
from stepscope.analysis.findings.programs.host_ops import left_of_step
from stepscope.analysis.findings.promise import shorten_kernels, timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.ops.sliced_gradients import sliced_gradients
from stepscope.analysis.replay.plan import Plan
from stepscope.registers.policy.findings import WORTH_A_FINDING
from stepscope.registers.policy.host_code import SHORT_HOST_OP_NS

_ON_HOST = ("host_compute", "dispatch")
_OWNED = ("compute", "copy", "dispatch")


def find(case: Case) -> Finding | None:
    """Gradients of slices in PyTorch, on a device or on the host that computes them itself."""
    if case.runs_programs:
        return None
    nodes = sliced_gradients(case.trace)
    if nodes.is_empty():
        return None
    parts = parts_of_slices(case.trace, nodes)
    return _on_host(case, nodes, parts) if case.device is None else _on_device(case, nodes, parts)


def _on_device(case: Case, nodes: pl.DataFrame, parts: pl.DataFrame) -> Finding | None:
    """The kernels of these nodes, and their dispatch."""
    work = work_of_slices(case, parts)
    mine = pl.concat([work["event"], parts["event"]]).unique()
    owned = case.free(pl.col("part").is_in(_OWNED), pl.col("named_by").is_in(mine.implode()))
    ns = case.per_step(owned)
    if ns < WORTH_A_FINDING * case.step_ns:
        return None
    shorter = shorten_kernels(case, work)
    change = Change(
        _dispatch_less(case, shorter.smallest, parts, work, "most"),
        _dispatch_less(case, shorter.largest, parts, work, "least"),
    )
    return timed(case, RULE, owned, change, _why(case, ns, nodes), _evidence(nodes))


def _dispatch_less(case: Case, plan: Plan, parts: pl.DataFrame, work: pl.DataFrame, end: str) -> Plan:
    """The host dispatches one node for all slices of a tensor, and the engine works less between them."""
    count = len(case.trace.events)
    nothing = pl.repeat(None, count, dtype=pl.Float64, eager=True)
    left = nothing.scatter(parts["event"], parts[f"host_{end}"])
    launched = nothing.scatter(work["event"], work[f"host_{end}"])
    own = left.gather(plan.host["event"])
    frames = (case.trace.events["kind"] == "python").gather(plan.host["event"]).fill_null(False)
    before = launched.gather(plan.items["event"]).gather(plan.host["item"])
    share = pl.select(pl.coalesce(own, pl.when(frames).then(before))).to_series().fill_null(1.0)
    return plan.with_host(pl.lit(share < 1) & (pl.col("cause") == "dispatch"), pl.lit(share))


def _on_host(case: Case, nodes: pl.DataFrame, parts: pl.DataFrame) -> Finding | None:
    """The ops of these nodes compute by themselves."""
    owned = case.free(pl.col("part").is_in(_ON_HOST), pl.col("named_by").is_in(parts["event"].implode()))
    ns = case.per_step(owned)
    if ns < WORTH_A_FINDING * case.step_ns:
        return None
    ends = zip(("least", "most"), computed_of_slices(), dispatched_of_slices(), strict=True)
    of_parts = owned.join(parts.rename({"event": "named_by"}), on="named_by", maintain_order="left")
    # A single op may only have waited for a core.
    is_long = pl.col("ns").sum().over("named_by").median().over("name") >= SHORT_HOST_OP_NS
    left = of_parts.with_columns(
        pl.when(is_long).then(computed).otherwise(dispatched).alias(end) for end, computed, dispatched in ends
    )
    accounted = left_of_step(case, left)
    return timed(case, RULE, owned, case.plan, _why(case, ns, nodes), _evidence(nodes), accounted=accounted)


def _why(case: Case, ns: int, nodes: pl.DataFrame) -> str:
    return f"{case.of_step(ns)} makes gradients of whole tensors, one for each of {_slices(nodes):,} slices, and adds them up."


def _slices(nodes: pl.DataFrame) -> int:
    return round(float(nodes["slices"].max() or 0))  # type: ignore[arg-type]


def _evidence(nodes: pl.DataFrame) -> dict[str, object]:
    return {"slices": _slices(nodes)}


RULE: Rule[Case] = Rule(
    code="sliced-gradients",
    title="Each slice of a tensor gets a gradient of the whole tensor",
    turn=85,
    page="ops",
    owns="kernels and dispatch of autograd's nodes `SelectBackward0` and `SliceBackward0` (without a device, their ops), if a step has at least eight of them for tensors of one size, and three or more for each tensor: each fills a tensor as large as the whole, copies the gradient of its slice into it, and adds it to those of the other slices. Two of them belong to one tensor if no op between them is given an array of as many elements, and the sums say that they meet. Slices that overlap count if they are windows of one length at even distances",
    change="the gradients of all slices become one stack: nothing fills or adds whole tensors, and the pieces are copied at 30 to 80 % of the bound of that work (on a CPU, in 50 to 100 % of the time). The host takes 10 to 35 % of the time for each slice, and as long as for one slice besides. Where slices overlap or are taken more than once, the pieces are still added up, one by one at worst; on a CPU, to unfold windows takes up to 30 % of the time of filling and adding whole tensors, and as long as their slices where these are short ops",
    fix={
        "pytorch": "Take all slices with one op before the loop, so that their gradients are joined by one op as well: for x_t in x.unbind(1) instead of x[:, t], q, k, v = qkv.unbind(0) or torch.chunk and torch.split for blocks of a tensor, x.unfold(1, length, step) for windows. Keep and reuse the slices that are needed several times; the results are the same.",
        ANY: "Take all slices of a tensor with one op.",
    },
    find=find,
)
