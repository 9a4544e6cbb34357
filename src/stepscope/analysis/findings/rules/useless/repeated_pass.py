"""A model runs once for each of its outputs, where one pass gives them all."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.promise import timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.ops.graph_scopes import scoped_ops
from stepscope.analysis.ops.model_passes import find_passes
from stepscope.names import short_name
from stepscope.registers.policy.findings import ACCOUNT_SAVES, TOP_NAMES, WORTH_A_FINDING


def find(case: Case) -> Finding | None:
    """Passes that share their layers and end in different heads, on the host."""
    if case.device is not None or case.trace.info.framework != "tensorflow":
        return None
    found = find_passes(scoped_ops(case.trace, case.ops))
    if found is None:
        return None
    owned = case.free(pl.col("part") == "host_compute", pl.col("named_by").is_in(found.events.implode()))
    ns = case.per_step(owned)
    if ns < WORTH_A_FINDING * case.step_ns:
        return None
    heads = [short_name(head) for head in found.heads[:TOP_NAMES]]
    detail = (
        f"{case.of_step(ns)} in layers that {found.passes} passes of {short_name(found.model)} share, each of which goes on into a head "
        f"of its own ({', '.join(heads)}). If all get the same batch, one pass gives all results."
    )
    evidence = {"passes": found.passes, "heads": heads}
    return timed(case, RULE, owned, case.plan, detail, evidence, accounted=_left(case, ns, found.passes))


def _left(case: Case, ns: float, passes: int) -> Interval:
    """One pass of several, and one backward pass of the sum."""
    spared = min(1.0, ns / case.step_ns) * (1 - 1 / passes)
    return Interval(1 - spared, 1 - spared, 1 - ACCOUNT_SAVES * spared)


RULE: Rule[Case] = Rule(
    code="repeated-pass",
    title="A model runs once for each of its outputs",
    turn=213,
    turn_without_device=92,
    page="ops",
    owns="on a CPU, the ops of TensorFlow functions that two or more calls of one model share, by their scopes, if each call goes on into layers that no other has, and a step takes no more than one batch from a dataset",
    change="one of the passes remains",
    fix={
        "tensorflow": "Call the model once per step and use all of its outputs: add the losses and take one gradient of the sum inside one GradientTape, instead of a call and a tape for each output.",
        ANY: "Call the model once per step and use all of its outputs.",
    },
    find=find,
)
