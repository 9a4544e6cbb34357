"""All rows of a table are computed in every step, of which the step then picks a few."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import left_as_a_whole, timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.ops.gathered_tables import find_tables
from stepscope.analysis.ops.graph_scopes import scoped_ops
from stepscope.names import short_name
from stepscope.registers.policy.findings import WORTH_A_FINDING


def find(case: Case) -> Finding | None:
    """Ops on whole tables that are gathered from, on the host."""
    if case.device is not None or case.trace.info.framework != "tensorflow":
        return None
    found = find_tables(scoped_ops(case.trace, case.ops))
    if found is None:
        return None
    owned = case.free(pl.col("part") == "host_compute", pl.col("named_by").is_in(found.events.implode()))
    ns = case.per_step(owned)
    if ns < WORTH_A_FINDING * case.step_ns:
        return None
    named = ", ".join(short_name(each) for each in found.last)
    detail = (
        f"{case.of_step(ns)} computes {named} for all rows of a table, and its gradients, before the step gathers some: "
        "to gather these takes a small part of that, so they are few."
    )
    evidence = {"ops": list(found.last)}
    return timed(case, RULE, owned, case.plan, detail, evidence, accounted=left_as_a_whole(case, ns))


RULE: Rule[Case] = Rule(
    code="whole-table",
    title="All rows of a table are computed, of which a step picks a few",
    turn=209,
    turn_without_device=93,
    page="ops",
    owns="on a CPU, the ops of TensorFlow functions that compute a table whose rows are then gathered, and their gradients: the gradient of the gather is made dense for one of them, which takes at least five times as long as the longest gather",
    change="they take no time, as for the gathered rows alone",
    fix={
        "tensorflow": "Compute only the rows that are gathered: tf.nn.l2_normalize(tf.gather(table, ids), -1) instead of tf.gather(tf.nn.l2_normalize(table, -1), ids). Then gradients are sparse, too.",
        ANY: "Compute only the rows that are gathered.",
    },
    find=find,
)
