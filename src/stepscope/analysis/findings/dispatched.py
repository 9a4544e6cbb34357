"""The host's work for ops that a change makes unnecessary: their own dispatch, and that of all that they call."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.change import Change
from stepscope.analysis.replay.plan import Plan
from stepscope.trace.scopes import ancestors


def at_or_below(events: pl.DataFrame, chosen: pl.Series) -> pl.Series:
    """The chosen events, and all that are inside one."""
    wanted = pl.repeat(False, len(events), dtype=pl.Boolean, eager=True).scatter(chosen, True)
    found: pl.Series = events["id"].filter(wanted | ancestors(events, wanted).is_not_null())
    return found


def without_dispatch(changed: Change, events: pl.Series) -> Change:
    """The same, where the host does not dispatch these ops and calls either."""
    return Change(*(_without(plan, events) for plan in (changed.smallest, changed.largest)))


def _without(plan: Plan, events: pl.Series) -> Plan:
    return plan.with_host(pl.col("event").is_in(events.implode()) & (pl.col("cause") == "dispatch"))
