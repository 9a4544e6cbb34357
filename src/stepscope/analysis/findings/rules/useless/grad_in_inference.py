"""Inference that records a graph for a backward pass which never comes."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.serving.workload import INFERENCE
from stepscope.registers.calibration.launches import WITHOUT_GRAPH_LEAST, WITHOUT_GRAPH_MOST
from stepscope.registers.policy.findings import MAJORITY, WORTH_SHOWING


def find(case: Case) -> Finding | None:
    """Ops have a number for the backward pass only while autograd records."""
    if case.workload != INFERENCE or case.trace.info.framework != "pytorch":
        return None
    if not _records(case):
        return None
    owned = case.free(pl.col("part") == "dispatch")
    ns = case.per_step(owned)
    if ns < WORTH_SHOWING * case.step_ns:
        return None
    dispatch = pl.col("cause") == "dispatch"
    change = Change(
        *(case.plan.with_host(dispatch, left) for left in (WITHOUT_GRAPH_MOST, WITHOUT_GRAPH_LEAST))
    )
    detail = f"No backward pass was recorded, but autograd notes every op for one; dispatch takes {case.of_step(ns)}."
    return timed(case, RULE, owned.clear(), change, detail)


def _records(case: Case) -> bool:
    """Whether most of the ops that launch something are numbered, and most of all that no other op calls.

    While a graph is captured hardly anything launches, and what is outside of the capture says nothing of the model. Where nothing
    needs a gradient, as in a model whose weights are frozen, ops are numbered as well, but no node takes a number: all have the same.
    """
    events = case.trace.events
    with_number = case.trace.ops.filter(pl.col("sequence").is_not_null())
    numbered = with_number["event"].implode()
    in_step = events["step"].is_not_null()
    called = events["kind"].gather(events["parent"]).eq_missing(pl.Series(["op"], dtype=events["kind"].dtype))
    outermost = events.filter((events["kind"] == "op") & in_step & ~called)["id"]
    launching = case.trace.kernels["op"].drop_nulls().unique()
    launching = launching.filter(in_step.gather(launching))
    mine = with_number.filter(pl.col("event").is_in(outermost.implode()))
    # Each thread counts for itself.
    numbers = mine.select("sequence", *(events[name].gather(mine["event"]) for name in ("track", "step")))
    return numbers.n_unique() > MAJORITY * len(mine) and all(
        len(ops) > 0 and int(ops.is_in(numbered).sum()) > MAJORITY * len(ops)
        for ops in (launching, outermost)
    )


RULE: Rule[Case] = Rule(
    code="grad-in-inference",
    title="Inference records gradients",
    turn=147,
    page="ops",
    owns="nothing: it is a part of `dispatch`",
    change="dispatch takes 75 to 90 % of its time",
    fix={
        "pytorch": "Run inference under torch.inference_mode() (or torch.no_grad()): no graph is kept, memory is freed at once, and fused paths of nn.Transformer are allowed.",
        ANY: "Let the framework record nothing while it only infers.",
    },
    find=find,
    needs_device=True,
)
