"""What holds the step up, ranked by the saving that can be expected: each finding owns its own slices of the account."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial, reduce

import msgspec
import polars as pl

from stepscope.analysis.cut_off import steps_without_work
from stepscope.analysis.findings.afterwards.behind_waits import put_behind_causes, put_behind_waits
from stepscope.analysis.findings.afterwards.vague import say_what_comes_first, withdraw_vague
from stepscope.analysis.findings.batches.busy_cores import beside_busy_cores
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.faults import PROMISES
from stepscope.analysis.findings.finding import Finding, Interval, ranked
from stepscope.analysis.findings.promise import least_left, left_by_replay
from stepscope.analysis.findings.registry import find_rules, rules_for
from stepscope.analysis.findings.rule import Rule
from stepscope.analysis.findings.rules.steps.warm_up import withdraw_cold
from stepscope.analysis.findings.situations import fitted
from stepscope.analysis.findings.spare import spared
from stepscope.analysis.findings.spread import OF_BOUNDS, spread_of
from stepscope.analysis.graph_captures import only_captures
from stepscope.analysis.parts import BUSY_PARTS
from stepscope.analysis.xla.file_work import sources
from stepscope.registers.policy.findings import MOST_SAVED, TOP_NAMES

# What is said of findings once all of them are known, in this order.
_AFTER_RULES = (withdraw_cold, put_behind_waits, put_behind_causes, withdraw_vague, say_what_comes_first)


def apply_rules(case: Case) -> list[Finding]:
    """All findings worth showing: what threatens the run first, then by the expected saving."""
    if case.all_slices.is_empty():
        return []
    if steps_without_work(case.trace)[0]:  # what the step waited for was in the part that is gone
        return apply_memory_rules(case)
    if only_captures(case.trace, case.steps):  # what the host does there slows no step of the job down
        return apply_memory_rules(case)
    judge(case)
    return ranked(
        spared(
            case,
            PROMISES,
            lambda: list(fitted(case, beside_busy_cores(case, case.earlier))),
            lambda: list(case.earlier),
        )
    )


def apply_memory_rules(case: Case) -> list[Finding]:
    """What threatens the run, of a recording that has no time to account for."""
    rules = [rule for rule in find_rules() if rule.class_ == "memory"]
    return [
        found
        for rule in rules
        for found in spared(case, rule.code, partial(rule.findings, case), list[Finding])
    ]


def judge(case: Case) -> dict[str, list[pl.Series]]:
    """Apply the rules in their turn, once for the case: the slices that each finding claimed, by its code."""
    if case.owned is None:
        case.owned = {}
        for rule in rules_for(case):
            before = len(case.claims)
            mine = spared(case, rule.code, partial(_ask, case, rule), list[Finding])
            case.earlier += mine
            case.owned |= {finding.code: case.claims[before:] for finding in mine}
        for judge_again in _AFTER_RULES:
            spared(case, PROMISES, partial(judge_again, case), lambda: None)
    return case.owned


def _ask(case: Case, rule: Rule[Case]) -> list[Finding]:
    before = len(case.claims)
    return [_placed(case, finding, case.claims[before:]) for finding in rule.findings(case)]


def _placed(case: Case, finding: Finding, claims: Sequence[pl.Series]) -> Finding:
    """With the lines of the program, where the file says them of its instructions and the rule knows none."""
    if finding.where or not claims or "of_name" not in case.trace.cold:
        return finding
    owned = case.all_slices[pl.concat(claims).sort()].filter(pl.col("part").is_in(BUSY_PARTS))
    longest = owned.group_by("named_by").agg(pl.col("ns").sum()).sort("ns", "named_by", descending=True)
    return msgspec.structs.replace(finding, where=sources(case.trace, longest["named_by"])[:TOP_NAMES])


def replay_together(case: Case, found: Sequence[Finding]) -> Interval | None:
    """The speed-up of all changes made together; none where one of those that promise something was not replayed."""
    replayed = case.changes.keys() - case.of_slow_steps
    promising = [finding for finding in found if finding.saves_ns_per_step > 0]
    if any(finding.code not in replayed for finding in promising):
        return None
    codes = replayed & {finding.code for finding in found if finding.class_ == "time"}
    changes = [change for code, change in case.changes.items() if code in codes]
    if not changes:
        return None
    # How much less is launched is up to people, also where they change other things beside it.
    widest = "launch-bound" if "launch-bound" in codes else ""
    every = reduce(Change.combined, changes)
    # What surely goes with each of several fixes may be all that goes, so that the low end is not moved.
    spread = replace(spread_of(widest, case.device_decides), worst=OF_BOUNDS.worst)
    both = case.gain(left_by_replay(case, every), work=least_left(case, every), spread=spread).speedup
    return _consistent(both, [finding.speedup for finding in promising])


def _consistent(together: Interval, alone: Sequence[Interval]) -> Interval:
    """A change more costs nothing, but each finding has a spread of its own, which may be wider than that of all.

    At worst, each saves what it does alone at worst: that one fix makes room for another is not certain where neither is.
    """
    saved = min(MOST_SAVED, sum(1 - 1 / one.low for one in alone))
    together = Interval(min(together.low, round(1 / (1 - saved), 3)), together.mid, together.high)
    every = [together, *alone]
    return Interval(*(max(getattr(one, end) for one in every) for end in ("low", "mid", "high")))
