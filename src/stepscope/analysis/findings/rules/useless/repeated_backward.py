"""The backward pass runs more than once through the same layers of one step."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.compute.unused_gradients import unused_nodes
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.dispatched import at_or_below, without_dispatch
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.loops.derivatives import FIX, TITLE
from stepscope.analysis.findings.loops.host_loops import host_time_of, shortened
from stepscope.analysis.findings.programs.host_ops import left_of_step, of_host_ops
from stepscope.analysis.findings.promise import timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.rules.host.optimizer_loop import in_optimizer, is_step_of_optimizer
from stepscope.analysis.findings.rules.host.unbatched_loop import RULE as IN_LOOP
from stepscope.analysis.findings.rules.host.unbatched_loop import batched
from stepscope.analysis.findings.rules.useless.useless_backward import RULE as USELESS
from stepscope.analysis.findings.rules.useless.useless_backward import without_engine
from stepscope.analysis.host.loop_backward import with_backward
from stepscope.analysis.host.loops import Loops
from stepscope.analysis.repeats.derivatives import KEY, as_loops, backward_nodes, make_graphs, one_by_one
from stepscope.registers.policy.findings import MAJORITY, WORTH_A_FINDING

# A gradient of gradients (a penalty on them) needs both passes.
_REPEATED = "computes gradients of ops whose gradients the step has already computed or computes again later ({} backward passes through them)."
_THROWN_AWAY = "computes gradients of layers that the optimizer which follows does not update: the backward pass goes through them again for the optimizer that does."
_ONE_BY_ONE = "passes while autograd goes through the same layers {} times, for the derivatives of one output after the other."
_OF_PASSES = ("dispatch", "python", "device_gap")
_SECOND_ORDER = r"BackwardBackward|DoubleBackward"


def find(case: Case) -> Finding | None:
    """Gradients of the same forward op that are computed several times."""
    nodes = backward_nodes(case.trace)
    if nodes.is_empty() or nodes["name"].str.contains(_SECOND_ORDER).any():
        return None
    # Which of them is needed is not known: all but one can go, and they do the same work.
    again = nodes.sort("start_ns").filter(pl.int_range(pl.len()).over(KEY) < pl.len().over(KEY) - 1)["event"]
    if again.is_empty() or make_graphs(case.trace, again):
        return None
    derivatives = one_by_one(case.trace, nodes)
    if derivatives is not None:
        return None if derivatives.is_empty() else _derivatives(case, derivatives)
    is_thrown_away = _thrown_away(case, nodes)
    if is_thrown_away:  # with the sums of gradients, which all passes have under one number
        again = pl.concat([again, unused_nodes(case.trace)]).unique()
    passes = int(nodes.group_by(KEY).agg(pl.len())["len"].max() or 0)  # type: ignore[arg-type]
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


def _thrown_away(case: Case, nodes: pl.DataFrame) -> bool:
    """Whether an optimizer steps between the passes: one that updated these layers would have made the second impossible."""
    events = case.trace.events
    steps = events["start_ns"].filter(is_step_of_optimizer(events)).sort()
    both = nodes.group_by(KEY).agg(
        first=pl.col("start_ns").min(), last=pl.col("start_ns").max(), times=pl.len()
    )
    both = both.filter(pl.col("times") > 1)
    between = steps.search_sorted(both["last"]) > steps.search_sorted(both["first"])
    return int(between.sum()) > MAJORITY * len(both)


def _derivatives(case: Case, passes: pl.DataFrame) -> Finding | None:
    """Passes that each compute the derivatives of one output: one pass for all of them launches as much as one of them."""
    if case.has_found(IN_LOOP.code) and len(case.loops.found):
        kept = with_backward(case.trace, case.loops).loop_of.gather(passes["event"]).is_null()
        passes = passes.filter(kept)  # the loop's finding speaks of the others
    if passes.is_empty():
        return None
    loops = as_loops(case.trace, passes)
    owned = _time_of(case, loops)
    ns = case.per_step(owned)
    if ns < WORTH_A_FINDING * case.step_ns:
        return None
    count = int(loops.found["iterations"].median())  # type: ignore[arg-type]
    detail = f"{case.of_step(ns)} {_ONE_BY_ONE.format(count)}"
    if case.device is None:
        left = left_of_step(case, shortened(case, owned, loops))
        found = timed(case, RULE, owned, case.plan, detail, {"passes": count}, TITLE, accounted=left)
    else:
        found = timed(case, RULE, owned, batched(case, loops), detail, {"passes": count}, TITLE)
    found.fix = FIX
    return found


def _time_of(case: Case, loops: Loops) -> pl.DataFrame:
    """The free slices of these loops: kernels and what launches them, or without a device the ops."""
    if case.device is None:
        return host_time_of(case, loops, in_optimizer(case.trace.events))
    kernels = case.trace.kernels.filter(loops.loop_of.gather(case.trace.kernels["op"]).is_not_null())["event"]
    launched = pl.col("part").is_in(_OF_PASSES) & pl.lit(
        loops.loop_of.gather(case.unclaimed["named_by"]).is_not_null().fill_null(False)
    )
    return case.free(launched | ((pl.col("part") == "compute") & pl.col("named_by").is_in(kernels.implode())))


RULE: Rule[Case] = Rule(
    code="repeated-backward",
    title="The backward pass runs twice through the same layers",
    turn=174,
    turn_without_device=94,
    page="ops",
    owns="kernels (without a device, the ops themselves) of backward ops that run more than once in a step for the same forward op, if gradients are added up in between and no optimizer steps. Passes through a graph for gradients of gradients (`create_graph=True`) do not count. Three passes or more that add nothing up compute derivatives of one output after the other: theirs are also the gaps and the host's time between their kernels",
    change="all passes but one through those ops are neither launched nor run. Passes for derivatives become one, as the iterations of `unbatched-loop` do",
    fix={
        "pytorch": "Call backward() once on the sum of the losses instead of once per loss with retain_graph=True; detach() what a loss must not reach (in a GAN: discriminator(fake.detach())).",
        ANY: "Compute the gradient of the sum of the losses once, and stop gradients where a loss must not reach.",
    },
    find=find,
)
