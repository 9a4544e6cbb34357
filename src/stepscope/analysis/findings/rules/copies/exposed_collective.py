"""Communication that nothing hides."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.profiler_doubt import withdraw
from stepscope.analysis.findings.promise import no_more_than, timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.transfers.communication import (
    choose_advice,
    hide,
    left_behind_work,
    what_can_be_hidden,
)
from stepscope.analysis.findings.transfers.staging import sent_through_host
from stepscope.registers.policy.findings import WORTH_A_FINDING, WORTH_A_SENTENCE, WORTH_SHOWING
from stepscope.units import duration

_AT_MOST = " At most {} of it can be hidden: the rank has no more to do meanwhile."
_THROUGH_HOST = " Of the communication, {} are copies through memory of the host, which NCCL does without."
_NOTHING = " The rank does hardly anything else that could hide it."


def find(case: Case) -> Finding | None:
    """Communication that nothing hides; advice where a step has hardly anything to hide it behind."""
    staged = sent_through_host(case.trace)
    copied = (pl.col("part") == "copy") & pl.col("named_by").is_in(staged.implode())
    owned = case.free(pl.col("part").is_in(["collective", "host_collective"]) | copied)
    ns = case.per_step(owned)
    if ns < WORTH_A_FINDING * case.step_ns:
        return None
    hidden = what_can_be_hidden(case, ns)
    can_hide = hidden.most >= WORTH_SHOWING * case.step_ns
    limit = "" if hidden.most >= ns else _AT_MOST.format(duration(hidden.most)) if can_hide else _NOTHING
    detail = f"{case.of_step(ns)} is communication that no computation overlaps.{limit}"
    copied_ns = case.per_step(owned.filter(pl.col("part") == "copy"))
    if copied_ns >= WORTH_A_SENTENCE * case.step_ns:
        detail += _THROUGH_HOST.format(duration(copied_ns))
    fix = choose_advice(case, owned, RULE.fix_for(case.trace.info.framework, case.has_device), can_hide)
    left = left_behind_work(case, hidden)
    found = timed(case, RULE, owned, hide(case, owned, hidden), detail, accounted=left)
    found.fix = fix
    if not can_hide:
        case.changes.pop(RULE.code, None)
        withdraw(found)
        return found
    return no_more_than(case, found, hidden.most)


RULE: Rule[Case] = Rule(
    code="exposed-collective",
    title="The device waits for communication",
    title_without_device="The step waits for communication",
    turn=170,
    page="collectives",
    owns="`collective`, `host_collective`, and the copies with which gloo and its like send what is on a device",
    change="half to all of it is hidden: half behind computation at worst, and at best all, behind whatever else the rank does; never more than there is of that, and nothing of the time in which ranks wait for each other. Advice if a step has hardly anything else to do",
    fix={
        "pytorch": "Overlap communication with computation: start it early (async_op=True) and wait for it where its result is needed; send fewer and larger messages, or split the model over fewer ranks.",
        ANY: "Overlap communication with computation, or communicate less often.",
    },
    find=find,
)
