"""Findings about ops that the host computes itself, where there is no device: what kernels are to a device, ops are to a CPU.

The account says how long they take. It has no replay: what a change leaves of them is left of the step.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.analysis.basis import RECORDED
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.promise import timed
from stepscope.analysis.findings.rule import Rule
from stepscope.analysis.findings.spread import Spread
from stepscope.registers.calibration.profiler import DISPATCH_LEFT_WITH_STACKS_MID
from stepscope.registers.policy.findings import WORTH_A_FINDING
from stepscope.trace.scopes import ancestors

# A short op is dispatch.
_PARTS = ("host_compute", "dispatch")


def of_host_ops(
    case: Case,
    rule: Rule[Case],
    chosen: pl.DataFrame,
    why: str,
    evidence: dict[str, Any] | None = None,
    title: str = "",
    spread: Spread | None = None,
    *,
    are_long: bool = False,
) -> Finding | None:
    """A finding about ops; `chosen` has event, and least and most: what the change leaves of each, with the ops inside of it.

    An op that is inside of two chosen ones goes with the inner one. `are_long`: they run so long that the profiler costs them nothing.
    """
    owned = slices_of_ops(case, chosen["event"])
    ns = case.per_step(owned)
    if ns < WORTH_A_FINDING * case.step_ns:
        return None
    left = owned.join(chosen.select("least", "most", op="event").unique("op"), on="op", maintain_order="left")
    accounted = left_of_step(case, left)
    accounted = _without_profiler(case, ns / case.step_ns, accounted) if are_long else accounted
    detail = f"{case.of_step(ns)} {why}"
    return timed(case, rule, owned, case.plan, detail, evidence, title, accounted=accounted, spread=spread)


def slices_of_ops(case: Case, ops: pl.Series) -> pl.DataFrame:
    """What the host computes in these ops and those inside of them; `op` is the innermost of these ops."""
    events = case.trace.events
    wanted = pl.repeat(False, len(events), dtype=pl.Boolean, eager=True).scatter(ops, True)
    nearest = pl.select(pl.when(wanted).then(events["id"]).otherwise(ancestors(events, wanted))).to_series()
    computed = case.free(pl.col("part").is_in(_PARTS))
    return computed.with_columns(op=nearest.gather(computed["named_by"])).drop_nulls("op")


def computed_ns(case: Case, ops: pl.Series) -> pl.DataFrame:
    """op, ns: how long the host computes in each of these ops, in all usual steps."""
    return slices_of_ops(case, ops).group_by("op", maintain_order=True).agg(pl.col("ns").sum())


def left_of_step(case: Case, owned: pl.DataFrame) -> Interval:
    """What is left of a step if these slices (ns) shrink to `least` or `most`; what is expected is between the ends, as in a replay."""
    whole = case.step_ns * case.step_count
    least, most = sorted(
        max(0.0, 1 - float((owned["ns"] * (1 - owned[end])).sum()) / whole) for end in ("least", "most")
    )
    return Interval(least, (least * most) ** 0.5, most)


def _without_profiler(case: Case, share: float, left: Interval) -> Interval:
    """What is left of the step without the profiler, where that is shorter; `share` is that of the ops as recorded.

    At best only the rest is shorter, as far as a profiler slows it. What the step is shorter beyond that, the ops are at worst.
    """
    if case.basis.source == RECORDED:
        return left
    shorter = min(1.0, case.basis_ns / case.step_ns)
    kept = max(shorter, share + (1 - share) * DISPATCH_LEFT_WITH_STACKS_MID)
    worst = max(0.0, share - (kept - shorter)) / shorter / share
    low, mid = (1 - (1 - end) / kept for end in (left.low, left.mid))
    high = max(left.high, 1 - (1 - left.high) * worst)
    return Interval(low, min((mid * left.mid) ** 0.5, high), high)
