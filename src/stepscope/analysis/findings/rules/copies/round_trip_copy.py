"""Data that goes to the host and comes straight back."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.account.host_timeline import within
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change
from stepscope.analysis.findings.copy_items import copy_items
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.registers.policy.findings import (
    DETOUR_BYTES,
    WORTH_SHOWING,
)


@dataclass(frozen=True)
class Trips:
    """Round trips over the host: what they own, how the step is without them, and what takes their time."""

    pairs: pl.DataFrame
    copies: pl.Series  # events
    owned: pl.DataFrame
    changed: Change
    host_computes: bool  # longer than the copies take


def find(case: Case) -> Finding | None:
    """Round trips in which the copies take longer than what the host does meanwhile."""
    trips = round_trips(case)
    if trips is None or trips.host_computes:
        return None
    moved = int(case.trace.copies.filter(pl.col("event").is_in(trips.copies.implode()))["bytes"].sum())
    detail = f"{case.of_step(case.per_step(trips.owned))} passes while data goes to the host and comes straight back."
    evidence = {
        "bytes_per_step": moved // max(1, len(case.lengths)),
        "trips_per_step": round(len(trips.pairs) / max(1, len(case.lengths)), 2),
    }
    return timed(case, RULE, trips.owned, trips.changed, detail, evidence)


def round_trips(case: Case) -> Trips | None:
    """A copy to the host, and then a copy back before anything else is launched."""
    if case.device is None:
        return None  # the host is meant to compute
    work = copy_items(case).with_columns(back=pl.col("direction").shift(-1), until=pl.col("item").shift(-1))
    pairs = work.filter(
        pl.col("direction") == "DtoH",
        pl.col("back") == "HtoD",
        pl.col("bytes") >= DETOUR_BYTES,
    )
    if pairs.is_empty():
        return None
    away, back = pairs["item"], pairs["until"]
    inside = within(case.plan.items["item"], away, back)
    copies = case.plan.items.filter(inside, pl.col("event").is_not_null())["event"]
    owned = _slices_between(case, pairs)
    if case.per_step(owned) < WORTH_SHOWING * case.step_ns:
        return None
    on_host = case.plan.host.filter(pl.col("item").is_in(case.plan.items["item"].filter(inside).implode()))
    host_ns = int(on_host.filter(pl.col("cause") != "sync")["ns"].sum())
    copy_ns = int(owned.filter(pl.col("part") == "copy")["ns"].sum())
    after = case.plan.items["item"].filter(within(case.plan.items["item"], away + 1, back)).implode()
    # What the host held for the trip is freed after it, which takes long and leaves no event.
    next_items = pl.concat([back + 1, back + 2]).implode()
    freed = pl.col("item").is_in(next_items) & (pl.col("cause") == "unexplained")
    without = (
        case.plan.with_host(pl.col("item").is_in(after) | freed)
        .with_device(pl.lit(inside) & pl.col("event").is_in(copies.implode()))
        .without_waits(pl.lit(within(case.plan.items["item"], away, back + 1)))
    )
    # The op that copies away, and what the host does until the next launch, belong to the detour as well.
    detour = case.plan.items["item"].filter(within(case.plan.items["item"], away, back + 1)).implode()
    largest = without.with_host(pl.col("item").is_in(detour) & (pl.col("cause") != "input"))
    return Trips(pairs, copies, owned, Change(without, largest), host_ns > copy_ns)


def _slices_between(case: Case, pairs: pl.DataFrame) -> pl.DataFrame:
    """The slices from the beginning of a copy away to the end of the copy back, and what waits for them."""
    events = case.trace.events
    back = case.plan.items["event"].gather(pairs["until"])
    start = events["start_ns"].gather(pairs["event"])
    end = events["start_ns"].gather(back) + events["dur_ns"].gather(back)
    free = case.free(
        pl.col("part").is_in(["copy", "sync", "dispatch", "unexplained", "python", "device_gap"])
    )
    order = start.arg_sort()
    inside = within(free["start_ns"], start.gather(order), end.gather(order) - 1)
    return free.filter(inside)


RULE: Rule[Case] = Rule(
    code="round-trip-copy",
    title="Data goes to the host and back",
    turn=80,
    page="device",
    owns="the time from a copy to the host to the copy back, if nothing is launched between",
    change="both copies, the wait and the host's part take no time; at most, nor do the ops that copy",
    fix={
        "pytorch": "Keep the data on the device: drop .cpu() and .numpy() between two steps of the same computation and use the op's device version.",
        ANY: "Keep the data on the device between two steps of the same computation.",
    },
    find=find,
)
