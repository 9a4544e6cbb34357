"""What a finding promises: the slices that it owns, and the speed-up that a replay of the changed steps shows, as an interval.

A fix is a set of changes that are replayed together. Its smallest set is what surely goes, its largest what may go with it;
each is replayed on a fast, a usual and a slow host, since the profiler hides how fast it is. The speed-up is between the
least and the most that these combinations give. What a finding owns decides what it shows, not what it saves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from stepscope.analysis.basis import RECORDED
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change, as_change, with_busy_host
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.mostly import join_largest, mostly_in
from stepscope.analysis.findings.rule import Rule
from stepscope.analysis.findings.side_effects import FOLLOWING, following
from stepscope.analysis.findings.spread import Spread
from stepscope.analysis.parts import spoken
from stepscope.analysis.replay.plan import USUAL, Plan
from stepscope.registers.calibration.profiler import (
    BUSY_DISPATCH,
    BUSY_DISPATCH_WORST,
    LACKING_THAT_GOES,
    MOST_LACKING,
)
from stepscope.registers.calibration.promises import BEYOND_SHORTENED, BEYOND_WORK
from stepscope.registers.policy.findings import (
    ACCOUNT_SAVES,
    ACCOUNT_SAVES_LEAST,
    MAJORITY,
    MOST_SAVED,
    WORTH_A_FINDING,
    WORTH_A_SENTENCE,
    WORTH_SHOWING,
)
from stepscope.units import duration

_OF_FRAMEWORK = (
    "dispatch",
    "sync",
    "device_gap",
    "unexplained",
)  # host time that may go with work of the device


def of_part(
    case: Case,
    rule: Rule[Case],
    owned: pl.DataFrame,
    changed: Callable[[], Plan | Change],
    least: float = WORTH_SHOWING,
    follow: Sequence[str] = FOLLOWING,
    account: Callable[[Case, float], Interval] | None = None,
    choose_spread: Callable[[Change], Spread | None] = lambda _: None,
) -> Finding | None:
    """A finding that owns time of some part, if that is enough to show; only then is the change looked at.

    `account`: what is left where only the account can say it, if the rule knows better than `left_by_account`.
    """
    ns = case.per_step(owned)
    if ns < least * case.step_ns:
        return None
    mostly = mostly_in(case.top_names(owned), ns)
    left = None if account is None else account(case, ns)
    change, detail = as_change(changed()), f"{case.of_step(ns)}{mostly}."
    spread = choose_spread(change)
    return timed(case, rule, owned, change, detail, follow=follow, accounted=left, spread=spread)


def of_kernels(
    case: Case,
    rule: Rule[Case],
    chosen: pl.DataFrame,
    why: str,
    least: float = WORTH_A_FINDING,
    owned: pl.Series | None = None,
    evidence: dict[str, Any] | None = None,
    title: str = "",
    spread: Spread | None = None,
) -> Finding | None:
    """A finding about kernels; `chosen` has event, and least and most: what the change leaves of its length.

    It owns the time of those kernels, or of some of them. `spread`: where it is another than that of the code.
    """
    mine = chosen["event"] if owned is None else owned
    slices = case.free(pl.col("part") == "compute", pl.col("named_by").is_in(mine.implode()))
    ns = case.per_step(slices)
    if ns < least * case.step_ns:
        return None
    change, detail = shorten_kernels(case, chosen), f"{case.of_step(ns)} {why}"
    return timed(case, rule, slices, change, detail, evidence, title, spread=spread)


def shorten_kernels(case: Case, chosen: pl.DataFrame) -> Change:
    """The steps in which kernels take between `least` and `most` of their time, whichever is more."""
    ends = chosen.with_columns(
        least=pl.min_horizontal("least", "most"), most=pl.max_horizontal("least", "most")
    )
    items = case.plan.items.join(ends, on="event", how="left", maintain_order="left")
    smallest, largest = (
        case.plan.with_device(pl.lit(True), pl.lit(items[name].fill_null(1.0))) for name in ("most", "least")
    )
    return Change(
        with_busy_host(smallest, case.plan, BUSY_DISPATCH_WORST),
        with_busy_host(largest, case.plan, BUSY_DISPATCH, WORTH_A_FINDING),
    )


def timed(
    case: Case,
    rule: Rule[Case],
    owned: pl.DataFrame,
    changed: Plan | Change,
    detail: str,
    evidence: dict[str, Any] | None = None,
    title: str = "",
    follow: Sequence[str] = FOLLOWING,
    accounted: Interval | None = None,
    spread: Spread | None = None,
) -> Finding:
    """A finding that saves what the change saves; it owns its slices from now on.

    `accounted`: what is left where only the account can say it, if the rule knows better than `left_by_account`.
    `spread`: where it is another than that of the code.
    """
    mine = case.per_step(owned)
    shown = {"names": case.top_names(owned), **(evidence or {})}
    if not case.replay_fits:
        case.claim(owned)
        left = accounted or left_by_account(case, mine)
        work = _computing(case, owned) / case.step_ns
        return saving(case, rule, mine, left, detail, {**shown, "estimate": "account"}, title, work, spread)
    change = as_change(changed)
    left = left_by_replay(case, change)
    case.changes[rule.code] = change
    also = following(case.unclaimed, owned, ((1 - left.mid) * case.step_ns - mine) * case.step_count, follow)
    case.claim(pl.concat([owned, also]))
    more = case.per_step(also)
    # The account is of the recording, and what is saved is not: no more is said to go than that leaves room for.
    room = int((1 - left.mid) * case.basis_ns * case.unprofiled_share - mine)
    said = min(more, room)
    if said >= WORTH_A_SENTENCE * case.step_ns:
        shown["follows"] = {part: int(ns * said / more) for part, ns in case.by_part(also).items()}
        mostly = join_largest({_time_of(part): ns for part, ns in shown["follows"].items()}, said)
        detail += f" Another {duration(said)}, mostly {mostly}, would disappear as well."
    if mine and room - more >= WORTH_A_FINDING * case.step_ns:
        detail += f" In the replay {duration(room - more)} of other time goes with it, since work then overlaps or waits less."
    stays = least_left(case, change)
    return saving(case, rule, mine + more, left, detail, shown, title, stays, spread)


def _time_of(part: str) -> str:
    return "unexplained time" if part == "unexplained" else spoken(part)


def left_by_replay(case: Case, change: Change) -> Interval:
    """What the replay leaves of a usual step, as a share: the least, the expected and the most."""
    smallest = _shares(case, change.smallest)
    largest = smallest if change.largest is change.smallest else _shares(case, change.largest)
    both = [*smallest.values(), *largest.values()]
    lacking = _lacking(case)
    left = Interval(
        _without_lacking(min(both), lacking),
        _without_lacking((smallest[USUAL] * largest[USUAL]) ** 0.5, lacking**LACKING_THAT_GOES),
        _with_all_unseen(case, max(both)) if change.unseen_stays else max(both),
    )
    return _no_less_than_work(case, change, _with_unseen(case, change, left))


def least_left(case: Case, change: Change) -> float:
    """The share of a usual step that stays however well the fix works, for the ends of a promise are wider than the replay.

    It is what the device still has to do. A change that is mostly on the device may shorten its work more than foreseen: there, the
    step without any of that work stays, as far as the device and the user's code decide about it. What else goes with a change on
    the host no profile shows.
    """
    work = case.work_share(change.largest)
    if not _is_on_device(case, change.largest):
        return work
    touched = change.largest.items["device_ns"] < case.plan.items["device_ns"]
    without = change.largest.with_device(pl.lit(touched)).with_host(pl.col("cause").is_in(_OF_FRAMEWORK))
    without = replace(without, items=without.items.with_columns(added_ns=pl.lit(0, pl.Int64)))
    return max(work * BEYOND_WORK / BEYOND_SHORTENED, left_by_replay(case, as_change(without)).low)


def _is_on_device(case: Case, plan: Plan) -> bool:
    """Whether most of what a change saves is saved by the device alone."""
    alone = replace(plan, host=case.plan.host)
    saved, by_device = (case.played_ns - one.step_ns() for one in (plan, alone))
    return saved > 0 and by_device > MAJORITY * saved


def _computing(case: Case, owned: pl.DataFrame) -> int:
    """Time per step that the device computes beside what a finding owns."""
    computing = pl.col("part") == "compute"
    return case.per_step(case.slices.filter(computing)) - case.per_step(owned.filter(computing))


def _lacking(case: Case) -> float:
    """How many times as long the step is as the replay has it: host time that the recording does not show, or 1."""
    return min(MOST_LACKING, _times_longer(case))


def lacks_much(case: Case) -> bool:
    """Whether the replay lacks more of the step than the host's time explains, such as work that was not recorded."""
    return _times_longer(case) > MOST_LACKING


def _times_longer(case: Case) -> float:
    """How many times as long the step is as the replay has it, or 1."""
    return 1.0 if case.basis.source == RECORDED else max(1.0, case.basis_ns / case.played_ns)


def _without_lacking(share: float, lacking: float) -> float:
    """What is left if the time that the replay lacks goes with the change, as far as this removes the step at all."""
    return float(share / lacking ** max(0.0, 1 - share))


def _with_all_unseen(case: Case, share: float) -> float:
    """What is left if all the time that the replay lacks stays."""
    return 1 - (1 - share) / _times_longer(case)


def _with_unseen(case: Case, change: Change, left: Interval) -> Interval:
    """Where the step is much longer than the replay has it, something unseen decides: a change on the device alone leaves that as it is."""
    spares_host = change.smallest.host[USUAL].sum() < case.plan.host[USUAL].sum()
    if case.basis.source == RECORDED or spares_host:
        return left
    unseen = max(0.0, 1 - MOST_LACKING * case.played_ns / case.basis_ns)
    return Interval(*(unseen + (1 - unseen) * share for share in (left.low, left.mid, left.high)))


def _no_less_than_work(case: Case, change: Change, left: Interval) -> Interval:
    """No step is shorter than the work that is left for the device, also where the replay takes the step for longer than it is."""
    if case.basis.source == RECORDED:
        return left
    least, most = sorted(case.work_ns(plan) / case.basis_ns for plan in (change.smallest, change.largest))
    mid = min(1.0, max(left.mid, (least * most) ** 0.5))
    return Interval(min(1.0, max(left.low, least)), mid, min(1.0, max(left.high, least, mid)))


def _shares(case: Case, plan: Plan) -> dict[str, float]:
    """The changed step as a share of the unchanged one, for each speed of the host."""
    return {speed: plan.at(speed).step_ns() / before for speed, before in case.played.items()}


def left_by_account(case: Case, owned_ns: float) -> Interval:
    """What is left where only the account can say it: the owned time goes, in part or as a whole."""
    share = min(1.0, owned_ns / case.step_ns)
    return Interval(1 - share, 1 - ACCOUNT_SAVES * share, 1 - ACCOUNT_SAVES_LEAST * share)


def left_as_a_whole(case: Case, owned_ns: float) -> Interval:
    """The same of time that a fix removes as a whole, as that of a compiler: all of it is expected to go."""
    share = min(1.0, owned_ns / case.step_ns)
    return Interval(1 - share, 1 - share, 1 - ACCOUNT_SAVES * share)


def no_more_than(case: Case, found: Finding, saved_ns: float) -> Finding:
    """The finding, promising at most what goes if so much of a step is hidden: a bound that no noise exceeds."""
    least = 1 - min(1.0, saved_ns / case.step_ns)
    most = round(1 / max(1 - MOST_SAVED, least), 3)
    speedup = found.speedup
    found.speedup = Interval(min(speedup.low, most), min(speedup.mid, most), min(speedup.high, most))
    found.saves_ns_per_step = min(found.saves_ns_per_step, int((1 - least) * case.saved_of_ns))
    if found.left_ns_per_step is not None:
        ns, left = round(least * case.saved_of_ns), found.left_ns_per_step
        found.left_ns_per_step = Interval(max(ns, left.low), max(ns, left.mid), max(ns, left.high))
    return found


def saving(
    case: Case,
    rule: Rule[Case],
    owned_ns: int,
    left: Interval,
    detail: str,
    evidence: dict[str, Any],
    title: str = "",
    work: float = 0.0,
    spread: Spread | None = None,
) -> Finding:
    """A finding with its time and speed-up; `left` is the share of a usual step that the change leaves, `work` what surely stays of it.

    `spread`: where it is another than that of the code.
    """
    gain = case.gain(left, code=rule.code, work=work, spread=spread)
    return rule.finding(
        detail=detail,
        fix=rule.fix_for(case.trace.info.framework, case.has_device),
        title=title or rule.title_for(case.device is not None),
        evidence=evidence,
        share=round(min(1.0, owned_ns / case.step_ns), 4),
        saves_ns_per_step=gain.saves_ns,
        speedup=gain.speedup,
        left_ns_per_step=gain.left_ns,
    )
