"""The backward pass runs more than once through the same layers of one step."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.compute.unused_gradients import unused_nodes
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.dispatched import at_or_below, without_dispatch
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.programs.host_ops import of_host_ops
from stepscope.analysis.findings.promise import timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.rules.host.optimizer_loop import is_step_of_optimizer
from stepscope.analysis.findings.rules.useless.useless_backward import RULE as USELESS
from stepscope.analysis.findings.rules.useless.useless_backward import without_engine
from stepscope.registers.policy.findings import MAJORITY, WORTH_A_FINDING

_ENGINE = r"^autograd::engine::evaluate_function: "
_SUMS_UP = "AccumulateGrad"  # all of them have the same number
# A gradient of gradients (a penalty on them) needs both passes.
_REPEATED = "computes gradients of ops whose gradients the step has already computed or computes again later ({} backward passes through them)."
_THROWN_AWAY = "computes gradients of layers that the optimizer which follows does not update: the backward pass goes through them again for the optimizer that does."
_SECOND_ORDER = r"BackwardBackward|DoubleBackward"


def find(case: Case) -> Finding | None:
    """Gradients of the same forward op that are computed several times."""
    nodes = _nodes(case)
    if nodes.is_empty() or nodes["name"].str.contains(_SECOND_ORDER).any():
        return None
    key = ["step", "sequence", "name"]
    # Which of them is needed is not known: all but one can go, and they do the same work.
    again = nodes.sort("start_ns").filter(pl.int_range(pl.len()).over(key) < pl.len().over(key) - 1)["event"]
    if again.is_empty():
        return None
    is_thrown_away = _thrown_away(case, nodes, key)
    if is_thrown_away:  # with the sums of gradients, which all passes have under one number
        again = pl.concat([again, unused_nodes(case.trace)]).unique()
    passes = int(nodes.group_by(key).agg(pl.len())["len"].max() or 0)  # type: ignore[arg-type]
    if case.device is None:
        spared = again.to_frame("event").with_columns(least=pl.lit(0.0), most=pl.lit(0.0))
        why = _REPEATED.format(passes) if not is_thrown_away else _THROWN_AWAY
        return of_host_ops(case, USELESS if is_thrown_away else RULE, spared, why, {"passes": passes})
    inside = at_or_below(case.trace.events, again)
    kernels = case.trace.kernels.filter(pl.col("op").is_in(inside.implode()))["event"]
    owned = case.free(pl.col("part") == "compute", pl.col("named_by").is_in(kernels.implode()))
    ns = case.per_step(owned)
    if ns < WORTH_A_FINDING * case.step_ns:
        return None
    detail = f"{case.of_step(ns)} {_REPEATED.format(passes)}"
    gone = case.plan.with_device(pl.col("event").is_in(kernels.implode()))
    change = without_dispatch(without_engine(case, gone, kernels), inside)
    if is_thrown_away:
        detail = f"{case.of_step(ns)} {_THROWN_AWAY}"
        return timed(case, USELESS, owned, change, detail, {"passes": passes})
    return timed(case, RULE, owned, change, detail, {"passes": passes})


def _thrown_away(case: Case, nodes: pl.DataFrame, key: list[str]) -> bool:
    """Whether an optimizer steps between the passes: one that updated these layers would have made the second impossible."""
    events = case.trace.events
    steps = events["start_ns"].filter(is_step_of_optimizer(events)).sort()
    both = nodes.group_by(key).agg(
        first=pl.col("start_ns").min(), last=pl.col("start_ns").max(), times=pl.len()
    )
    both = both.filter(pl.col("times") > 1)
    between = steps.search_sorted(both["last"]) > steps.search_sorted(both["first"])
    return int(between.sum()) > MAJORITY * len(both)


def _nodes(case: Case) -> pl.DataFrame:
    """event, name, step, sequence, start_ns of the ops of the backward pass in the steps."""
    names = case.trace.events["name"].unique().drop_nulls()
    text = names.cast(pl.String)
    wanted = names.filter(text.str.contains(_ENGINE) & ~text.str.contains(_SUMS_UP, literal=True))
    events = case.trace.events.filter(
        pl.col("name").is_in(wanted.implode()), pl.col("step").is_not_null()
    ).select("step", "start_ns", event="id", name=pl.col("name").cast(pl.String))
    numbers = case.trace.ops.select("event", "sequence").drop_nulls()
    return events.join(numbers, on="event", how="inner")


RULE: Rule[Case] = Rule(
    code="repeated-backward",
    title="The backward pass runs twice through the same layers",
    turn=174,
    turn_without_device=94,
    page="ops",
    owns="kernels (without a device, the ops themselves) of backward ops that run more than once in a step for the same forward op, if no optimizer step comes in between",
    change="all passes but one through those ops are neither launched nor run",
    fix={
        "pytorch": "Call backward() once on the sum of the losses instead of once per loss with retain_graph=True; detach() what a loss must not reach (in a GAN: discriminator(fake.detach())).",
        ANY: "Compute the gradient of the sum of the losses once, and stop gradients where a loss must not reach.",
    },
    find=find,
)
