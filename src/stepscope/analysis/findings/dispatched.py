"""The host's work for ops that a change makes unnecessary: their own dispatch, and that of all that they call.

A row of the plan's host work is all of one name before a launch, such as the Python of a layer: calls inside may take a part of it.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.account.host_timeline import host_timeline, within
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.finding import Interval
from stepscope.analysis.host.causes import host_causes
from stepscope.analysis.host.functions import Calls
from stepscope.analysis.replay.plan import Plan
from stepscope.registers.calibration.profiler import PROFILED_PYTHON_COST_NS
from stepscope.trace.columns import repeated
from stepscope.trace.scopes import at_or_inside
from stepscope.trace.trace import Trace

_ROW = ("item", "cause", "named_by")


def at_or_below(events: pl.DataFrame, chosen: pl.Series) -> pl.Series:
    """The chosen events, and all that are inside one."""
    wanted = pl.repeat(False, len(events), dtype=pl.Boolean, eager=True).scatter(chosen, True)
    found: pl.Series = events["id"].filter(at_or_inside(events, wanted))
    return found


def without_dispatch(changed: Change, events: pl.Series) -> Change:
    """The same, where the host does not dispatch these ops and calls either."""
    return Change(*(_without(plan, events) for plan in (changed.smallest, changed.largest)))


def _without(plan: Plan, events: pl.Series) -> Plan:
    return plan.with_host(pl.col("event").is_in(events.implode()) & (pl.col("cause") == "dispatch"))


def without_calls(plan: Plan, trace: Trace, calls: pl.DataFrame) -> Plan:
    """The host does nothing of what it did between start_ns and end_ns of these calls, which follow one another on their track."""
    spans = plan.items.select(
        gap="item", start_ns=pl.col("at").shift(1, fill_value=0), end_ns="at", track="track"
    )
    spans = spans.filter(
        pl.col("track").is_in(calls["track"].unique().implode()), pl.col("start_ns") < pl.col("end_ns")
    )
    pieces, causes = host_timeline(trace).cut(spans), host_causes(trace)
    rows = pieces.select(
        item="gap",
        cause=causes["cause"].gather(pieces["event"]).fill_null("unexplained"),
        named_by=causes["named_by"].gather(pieces["event"]),
        ns=pl.col("end_ns") - pl.col("start_ns"),
        inside=_inside(pieces, calls),
    )
    gone = pl.col("ns").filter("inside").sum() / pl.col("ns").sum()
    shares = rows.filter(pl.col("ns") > 0).group_by(_ROW).agg(left=1 - gone)
    left = plan.host.select(_ROW).join(shares, on=_ROW, how="left", maintain_order="left", nulls_equal=True)
    return plan.with_host(pl.lit(True), pl.lit(left["left"].fill_null(1.0)))


def without_whole_calls(plan: Plan, calls: Calls) -> Plan:
    """The calls take no time, nor does what they launch, and nothing waits in them."""
    gone = calls.inside.gather(plan.host["event"]).fill_null(False)
    launched = pl.col("event").is_in(calls.launched.implode())
    waits = pl.col("event").is_in(calls.waits.implode())
    return plan.with_host(pl.lit(gone)).with_device(launched).without_waits(waits)


def left_without(case: Case, calls: Calls, owned: pl.DataFrame) -> Interval:
    """Where there is no replay: the calls go as a whole; of Python calls in them, the profiler added some of the time itself."""
    ns = case.per_step(owned)
    traced = calls.inside & (case.trace.events["kind"] == "python")
    usual = case.trace.events["step"].is_in(case.slices["step"].unique().implode()).fill_null(False)
    added = min(ns, int((traced & usual).sum()) * PROFILED_PYTHON_COST_NS / case.step_count)
    share, least = ns / case.step_ns, (ns - added) / max(1.0, case.step_ns - added)
    return Interval(1 - share, 1 - (share * least) ** 0.5, 1 - least)


def _inside(pieces: pl.DataFrame, calls: pl.DataFrame) -> pl.Series:
    """Whether each piece, which no call cuts, is in one on its track."""
    found = repeated(False, len(pieces), pl.Boolean)
    for track in calls["track"].unique():
        mine = calls.filter(pl.col("track") == track).sort("start_ns")
        during = within(pieces["start_ns"], mine["start_ns"], mine["end_ns"] - 1)
        found = found | (during & (pieces["track"] == track))
    return found
