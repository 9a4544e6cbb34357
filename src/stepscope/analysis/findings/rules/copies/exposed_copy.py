"""Copies that nothing hides."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.account.host_timeline import within
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.copy_items import copy_items
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import of_part
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.registers.calibration.launches import (
    LARGE_COPY_BYTES,
    PINNED_BYTES_PER_NS,
)
from stepscope.registers.policy.findings import (
    WORTH_SHOWING,
)


def find(case: Case) -> Finding | None:
    """Copies that nothing hides."""
    moving = copy_items(case).filter(pl.col("direction").is_in(["HtoD", "DtoH"]))
    over_bus = case.trace.copies.filter(pl.col("direction").cast(pl.String).is_in(["HtoD", "DtoH"]))["event"]
    owned = case.free(pl.col("part") == "copy", pl.col("named_by").is_in(over_bus.implode()))
    if case.per_step(owned) < WORTH_SHOWING * case.step_ns:
        return None
    faster = moving.join(_pinned_ns(case), on="event", maintain_order="left")
    items = case.plan.items.join(faster, on="event", how="left", maintain_order="left")
    factor = (items["pinned_ns"] / items["device_ns"]).fill_null(1.0).fill_nan(1.0).clip(0.0, 1.0)
    # A copy from pageable memory makes the host wait until it is done.
    blocking = within(case.plan.items["item"], moving["item"], moving["item"] + 2)
    changed = (
        case.plan.with_device(pl.lit(True), pl.lit(factor))
        .without_waits(pl.lit(blocking))
        .on_own_stream(pl.col("event").is_in(over_bus.implode()))
    )
    return of_part(case, RULE, owned, lambda: changed)


def _pinned_ns(case: Case) -> pl.DataFrame:
    """event, pinned_ns: how long each copy from or to pageable memory would take from pinned memory."""
    copies = case.trace.copies.with_columns(
        dur=case.trace.events["dur_ns"].gather(case.trace.copies["event"]),
        pageable=pl.concat_str(pl.col("source", "target").cast(pl.String).fill_null("")).str.contains(
            "(?i)pageable"
        ),
        between=pl.col("direction").cast(pl.String).is_in(["HtoD", "DtoH"]),
    )
    pinned = copies.filter(
        "between", ~pl.col("pageable"), pl.col("bytes") > LARGE_COPY_BYTES, pl.col("dur") > 0
    )
    best = (pinned["bytes"] / pinned["dur"]).max()
    rate = best if isinstance(best, float) else PINNED_BYTES_PER_NS
    return copies.filter("pageable").select("event", pinned_ns=(pl.col("bytes") / rate).cast(pl.Int64))


RULE: Rule[Case] = Rule(
    code="exposed-copy",
    title="The device waits for copies",
    title_without_device="The step waits for copies",
    turn=160,
    page="device",
    owns="`copy` between host and device",
    change="copies run beside the rest, from pinned memory",
    fix={
        "pytorch": "Copy while the device computes: pin_memory=True in the DataLoader, .to(device, non_blocking=True), and fetch the next batch on a side stream.",
        ANY: "Copy the next batch while the device computes, from pinned memory.",
    },
    find=find,
)
