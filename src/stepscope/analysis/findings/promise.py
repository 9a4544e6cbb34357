"""What a finding promises: the time that it owns, and the speed-up that a replay of the changed steps shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from stepscope.analysis.basis import is_broken
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.rule import Rule
from stepscope.analysis.findings.side_effects import FOLLOWING, following
from stepscope.analysis.parts import spoken
from stepscope.analysis.replay.plan import Plan
from stepscope.registers.policy.findings import (
    MOST_SAVED,
    WORTH_A_FINDING,
    WORTH_A_SENTENCE,
    WORTH_SHOWING,
)
from stepscope.units import duration


def of_part(
    case: Case,
    rule: Rule[Case],
    owned: pl.DataFrame,
    changed: Callable[[], Plan],
    least: float = WORTH_SHOWING,
    follow: Sequence[str] = FOLLOWING,
) -> Finding | None:
    """A finding that owns time of some part, if that is enough to show; only then is the change looked at."""
    ns = case.per_step(owned)
    if ns < least * case.step_ns:
        return None
    names = case.top_names(owned)
    mostly = f", mostly in {names[0]['name']}" if names and names[0]["name"] else ""
    return timed(case, rule, owned, changed(), f"{case.of_step(ns)}{mostly}.", follow=follow)


def of_kernels(
    case: Case, rule: Rule[Case], chosen: pl.DataFrame, why: str, least: float = WORTH_A_FINDING
) -> Finding | None:
    """A finding about kernels, `chosen` with event and the factor of its length after the change."""
    owned = case.free(pl.col("part") == "compute", pl.col("named_by").is_in(chosen["event"].implode()))
    ns = case.per_step(owned)
    if ns < least * case.step_ns:
        return None
    items = case.plan.items.join(chosen, on="event", how="left", maintain_order="left")
    factor = items["factor"].fill_null(1.0)
    changed = case.plan.with_device(pl.lit(True), pl.lit(factor))
    left = owned.join(chosen, left_on="named_by", right_on="event", how="left", maintain_order="left")
    removable = int(float((left["ns"] * (1 - left["factor"])).sum()) / case.step_count)
    return timed(case, rule, owned, changed, f"{case.of_step(ns)} {why}", owned_ns=max(0, removable))


def timed(
    case: Case,
    rule: Rule[Case],
    owned: pl.DataFrame,
    changed: Plan,
    detail: str,
    evidence: dict[str, Any] | None = None,
    title: str = "",
    owned_ns: int | None = None,
    follow: Sequence[str] = FOLLOWING,
) -> Finding:
    """A finding that saves what the changed plan saves; it owns its slices from now on."""
    mine = case.per_step(owned) if owned_ns is None else owned_ns
    shown = {"names": case.top_names(owned), **(evidence or {})}
    if not case.replay_fits:
        case.claim(owned)
        saved = case.basis_ns * mine / case.step_ns
        return saving(case, rule, mine, saved, mine, detail, {**shown, "estimate": "account"}, title)
    # Shares of the replayed step: where the replay is a little off, it is so before and after the change.
    saved = case.basis_ns * (1 - changed.step_ns() / case.played_ns)
    raw = case.step_ns * (1 - changed.as_recorded().step_ns() / case.recorded_ns)
    also = following(case.unclaimed, owned, (max(saved, raw) - mine) * case.step_count, follow)
    case.claim(pl.concat([owned, also]))
    more = case.per_step(also)
    if more >= WORTH_A_SENTENCE * case.step_ns:
        shown["follows"] = case.by_part(also)
        detail += (
            f" {duration(more)} beside it, mostly {_time_of(next(iter(shown['follows'])))}, would go too."
        )
    return saving(case, rule, mine + more, saved, raw, detail, shown, title)


def _time_of(part: str) -> str:
    return "unexplained time" if part == "unexplained" else spoken(part)


def saving(
    case: Case,
    rule: Rule[Case],
    owned_ns: int,
    saved: float,
    raw: float,
    detail: str,
    evidence: dict[str, Any],
    title: str = "",
) -> Finding:
    """A finding with its time and speed-up; `raw` is what the steps as recorded would save."""
    length = case.basis_ns
    saved = min(max(0.0, saved), MOST_SAVED * length, owned_ns)
    raw = min(max(0.0, raw), MOST_SAVED * case.step_ns, owned_ns)
    # Without the profiler's share the same time is more of the step; the bound is never below the estimate.
    bound = max(saved / length, raw / case.step_ns, min(owned_ns / case.step_ns, MOST_SAVED))
    # Slow steps are a finding of their own, and gain nothing here.
    saves, speedup = case.promise(saved * case.step_count / max(1, len(case.lengths)))
    bound = 0.0 if is_broken(case.trace) else bound
    return rule.finding(
        detail=detail,
        fix=rule.fix_for(case.trace.info.framework, case.has_device),
        title=title or rule.title_for(case.device is not None),
        evidence={**evidence, "speedup_as_recorded": round(case.step_ns / (case.step_ns - raw), 3)},
        share=round(owned_ns / case.step_ns, 4),
        saves_ns_per_step=saves,
        speedup=round(speedup, 3),
        speedup_max=round(max(speedup, 1 / (1 - bound)), 3),
    )
