"""The host's part of a copy to the device: what a runtime does before the bus moves a byte."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.account.host_timeline import within
from stepscope.analysis.findings.case import Case
from stepscope.analysis.replay.plan import Plan


def is_staging(case: Case) -> pl.Expr:
    """Slices and host time that are named by such an event."""
    return pl.col("named_by").is_in(case.staging.implode())


def uploads(case: Case) -> pl.Series:
    """Copies from the host to the device."""
    return _copies(case, "HtoD")


def over_bus(case: Case) -> pl.Series:
    """Copies between host and device, either way."""
    return _copies(case, "HtoD", "DtoH")


def _copies(case: Case, *directions: str) -> pl.Series:
    found: pl.Series = case.trace.copies.filter(pl.col("direction").cast(pl.String).is_in(directions))[
        "event"
    ]
    return found


def send_beside(case: Case, plan: Plan) -> Plan:
    """Uploads run beside the rest: the host neither stages them in the step nor waits until they are done."""
    sent = case.plan.items.filter(pl.col("event").is_in(uploads(case).implode()))["item"]
    waits = within(case.plan.items["item"], sent, sent + 2)
    calls = pl.col("item").is_in(sent.implode()) & pl.col("cause").is_in(["sync", "copy"])
    beside = plan.without_waits(pl.lit(waits)).with_host(calls | is_staging(case))
    return beside.on_own_stream(pl.col("item").is_in(sent.implode()))
