"""The host's part of a copy to the device: what a runtime does before the bus moves a byte."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.account.host_timeline import within
from stepscope.analysis.findings.case import Case
from stepscope.analysis.host.names import STAGES_COPY
from stepscope.analysis.replay.plan import Plan


def staging_events(case: Case) -> pl.Series:
    """Host events that stage copies to the device."""
    names = case.trace.events["name"].unique().drop_nulls()
    wanted = names.filter(names.cast(pl.String).str.contains(STAGES_COPY))
    events = case.trace.events.filter(pl.col("name").is_in(wanted.implode()))
    return events["id"]


def is_staging(case: Case) -> pl.Expr:
    """Slices and host time that are named by such an event."""
    return pl.col("named_by").is_in(staging_events(case).implode())


def uploads(case: Case) -> pl.Series:
    """Copies from the host to the device."""
    found: pl.Series = case.trace.copies.filter(pl.col("direction").cast(pl.String) == "HtoD")["event"]
    return found


def send_beside(case: Case, plan: Plan) -> Plan:
    """Uploads run beside the rest: the host neither stages them in the step nor waits until they are done."""
    sent = case.plan.items.filter(pl.col("event").is_in(uploads(case).implode()))["item"]
    waits = within(case.plan.items["item"], sent, sent + 2)
    calls = pl.col("item").is_in(sent.implode()) & pl.col("cause").is_in(["sync", "copy"])
    beside = plan.without_waits(pl.lit(waits)).with_host(calls | is_staging(case))
    return beside.on_own_stream(pl.col("item").is_in(sent.implode()))
