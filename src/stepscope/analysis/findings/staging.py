"""The host's part of a copy to the device: what a runtime does before the bus moves a byte."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.account.host_timeline import within
from stepscope.analysis.findings.case import Case
from stepscope.analysis.replay.plan import Plan
from stepscope.registers.policy.findings import LONG_PYTHON_NS, MAJORITY, UPLOADS_AFTER_PYTHON


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


def gaps_of(case: Case, making: pl.Expr) -> pl.Series:
    """Items before which the host mostly does this work: what else it does there serves the same."""
    host = case.plan.host.with_columns(making=making)
    summed = host.group_by("item").agg(
        made=pl.col("recorded_ns").filter("making").sum(), all=pl.col("recorded_ns").sum()
    )
    found: pl.Series = summed.filter(pl.col("made") > MAJORITY * pl.col("all"))["item"]
    return found


def send_less(case: Case, plan: Plan, making: pl.Expr, share: float) -> Plan:
    """What takes the result of this work of the host, arrays that are then sent, takes a share of its time: fewer bytes."""
    made = case.plan.host.filter(making, pl.col("recorded_ns") >= LONG_PYTHON_NS)["item"].unique()
    sent = case.plan.items.filter(pl.col("event").is_in(uploads(case).implode()))["item"]
    after = sent.filter(within(sent, made, made + UPLOADS_AFTER_PYTHON)).implode()
    mine = pl.col("item").is_in(after)
    calls = (mine & pl.col("cause").is_in(["dispatch", "sync", "copy"])) | is_staging(case)
    return plan.with_host(calls, share).with_device(mine, share)
