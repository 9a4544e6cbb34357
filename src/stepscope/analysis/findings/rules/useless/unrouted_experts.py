"""Every expert of a mixture computes every token, though only the results of a few are used for each."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.dispatched import at_or_below
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import of_kernels
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.ops.experts import Experts, find_experts
from stepscope.analysis.ops.forward_backward import forward_ops
from stepscope.registers.policy.repeated_work import ROUTED_MOST


def find(case: Case) -> Finding | None:
    """The kernels of the experts, forward and backward: as much of them stays as each token has experts."""
    if case.trace.info.framework != "pytorch":
        return None
    layers = [each for each in find_experts(case.trace, case.ops) if ROUTED_MOST * each.share < 1]
    if not layers:
        return None
    chosen = pl.concat([_left(case, each) for each in layers]).unique("event", maintain_order=True)
    most = max(layers, key=lambda each: each.count)
    why = f"is spent in {most.count} experts, each of which computes all of {most.tokens:,} tokens, though a token is sent to {most.chosen} of them."
    evidence = {"experts": most.count, "chosen": most.chosen, "tokens": most.tokens}
    return of_kernels(case, RULE, chosen, why, evidence=evidence)


def _left(case: Case, layer: Experts) -> pl.DataFrame:
    """event, least, most of the kernels of one layer; the tokens of an expert have to be gathered, and their results added up."""
    events = case.trace.events
    inside = at_or_below(events, pl.Series(layer.calls, dtype=pl.UInt32))
    forward = forward_ops(case.trace)
    if forward is not None:
        behind = events["id"].filter(forward.is_in(inside.implode()).fill_null(False))
        inside = pl.concat([inside, at_or_below(events, behind)]).unique()
    kernels = case.trace.kernels.filter(pl.col("op").is_in(inside.implode()))["event"]
    share = layer.share
    return kernels.to_frame("event").with_columns(
        least=pl.lit(share, pl.Float64), most=pl.lit(min(1.0, ROUTED_MOST * share), pl.Float64)
    )


RULE: Rule[Case] = Rule(
    code="unrouted-experts",
    title="Every expert computes every token",
    turn=188,
    page="ops",
    owns="kernels of the experts of a mixture, forward and backward, if each token is sent to less than half of four experts or more (`topk` of the scores), and each of them, or a later product with the weights of all, is given all tokens (not heads or projections of attention); in PyTorch, from module calls in the recording",
    change="the share of the experts that a token is sent to remains of their time, at worst twice that, and below 512 tokens the share of the experts that any of them is sent to, if that is less than half: tokens are gathered, and results added up",
    fix={
        "pytorch": "Give each expert the tokens that are sent to it: sort the choices once (order = chosen.flatten().argsort()), gather the tokens in that order, compute each expert on its part (sizes = chosen.flatten().bincount(minlength=n).tolist(); x[order // k].split(sizes), or torch._grouped_mm for all at once), and add the weighted results back with index_add_.",
        ANY: "Give each expert only the tokens that are sent to it.",
    },
    find=find,
    needs_device=True,
)
