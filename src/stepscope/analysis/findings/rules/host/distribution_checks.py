"""Distributions of PyTorch that check their arguments in every step, and read a value back for each of them."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change, with_warm_caches
from stepscope.analysis.findings.dispatched import left_without, without_whole_calls
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import left_by_replay, timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.host.causes import host_codes
from stepscope.analysis.host.functions import Calls, where
from stepscope.native.host.lineage import USER
from stepscope.registers.policy.findings import TOP_NAMES, WORTH_A_FINDING, WORTH_A_SENTENCE, WORTH_SHOWING
from stepscope.trace.lookup import is_named
from stepscope.trace.scopes import ancestors, at_or_inside

_FOLDER = r"(^|[/\\])torch[/\\]distributions[/\\]"
_CHECK = _FOLDER + r"constraints\.py\(\d+\): check$"
# The base class does nothing else in them that takes long; without checks, only `__init__` is called.
_CHECKING = _FOLDER + r"distribution\.py\(\d+\): (__init__|_validate_sample)$"


def find(case: Case) -> Finding | None:
    """The calls that check parameters or samples, with what they launch and wait for."""
    checking = _checking(case)
    if not checking.any():
        return None
    events = case.trace.events
    calls = Calls(case.trace, at_or_inside(events, checking))
    owned = case.free(pl.lit(calls.owns(case.unclaimed)))
    ns = case.per_step(owned)
    if ns < WORTH_A_SENTENCE * case.step_ns:
        return None
    plan = without_whole_calls(case.plan, calls)
    change = Change(plan, with_warm_caches(plan, case.plan))
    if ns < WORTH_SHOWING * case.step_ns and not _empties_queue(case, change):
        return None
    usual = events["step"].is_in(case.slices["step"].unique().implode()).fill_null(False)
    count = max(1, round(int((checking & usual).sum()) / case.step_count))
    detail = f"{case.of_step(ns)} goes to torch.distributions, which checks parameters and samples {count:,} times in a step and reads each answer back."
    evidence = {"checks_per_step": count}
    found = timed(case, RULE, owned, change, detail, evidence, accounted=left_without(case, calls, owned))
    users = ancestors(events, host_codes(case.trace) == USER).filter(checking & usual)
    found.where = where(case.trace, users)[:TOP_NAMES]
    return found


def _empties_queue(case: Case, change: Change) -> bool:
    """Whether what the host launches late behind short waits makes up for them."""
    return case.replay_fits and 1 - left_by_replay(case, change).mid >= WORTH_A_FINDING


def _checking(case: Case) -> pl.Series:
    """For every event whether it is a call of the base class that checks something."""
    events = case.trace.events
    checks = is_named(events, _CHECK)
    if not checks.any():
        return checks
    checked = events["parent"].filter(checks).drop_nulls().unique()
    around = pl.repeat(False, len(events), dtype=pl.Boolean, eager=True).scatter(checked, True)
    return around & is_named(events, _CHECKING)


RULE: Rule[Case] = Rule(
    code="distribution-checks",
    title="Distributions check their arguments in every step",
    turn=74,
    owns="calls of `torch.distributions` that check parameters or samples, with what they launch and wait for, where the recording has Python stacks",
    change="they take no time, nor does what they launch and wait for; at best, dispatch is also as fast as with warm caches",
    fix={
        "pytorch": "Switch the checks off when the job is known to work: torch.distributions.Distribution.set_default_validate_args(False) at its start, or validate_args=False for each distribution. They only look for errors, such as a scale of 0 or below, or NaN.",
        ANY: "Switch the checks off when the job is known to work.",
    },
    find=find,
)
