"""Ops that the host computes while the device waits."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change, with_warm_caches
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.promise import timed
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.rules.copies.round_trip_copy import round_trips
from stepscope.analysis.findings.rules.host import optimizer_loop
from stepscope.analysis.findings.rules.host.optimizer_loop import in_optimizer
from stepscope.analysis.findings.transfers.host_ops import computed_on_host
from stepscope.analysis.findings.transfers.staging import over_bus
from stepscope.registers.calibration.kernels import FUSED_OPTIMIZER_LAUNCHES
from stepscope.registers.calibration.launches import (
    HOST_OP_NS,
)
from stepscope.registers.calibration.profiler import WARM_DISPATCH_WORST
from stepscope.registers.policy.findings import MAJORITY, WORTH_SHOWING

_COMPUTED_IN = ("python", "dispatch")  # parts of ops that the host computes: the long ones, and the others


def find(case: Case) -> list[Finding]:
    """Round trips in which the host computes, and long ops that launch nothing."""
    found = [_in_round_trips(case), _long_ops(case)]
    return [one for one in found if one is not None]


def _in_round_trips(case: Case) -> Finding | None:
    trips = round_trips(case)
    if trips is None or not (trips.host_computes and trips.by_ops):
        return None
    return _describe(case, trips.owned, trips.changed)


def _long_ops(case: Case) -> Finding | None:
    """Long ops that launch nothing: the host computes them."""
    if case.device is None:
        return None  # the host is meant to compute
    events = case.trace.events
    idle = case.free(pl.col("part").is_in(_COMPUTED_IN))
    long = computed_on_host(case.trace) & (events["dur_ns"] >= HOST_OP_NS)
    owned = idle.filter(long.gather(idle["named_by"]).fill_null(False))
    if case.per_step(owned) < WORTH_SHOWING * case.step_ns:
        return None
    updates = in_optimizer(events).gather(owned["named_by"]).fill_null(False)
    if int(owned["ns"].filter(updates).sum()) > MAJORITY * int(owned["ns"].sum()):
        return _optimizer_on_host(case, owned.filter(updates))
    ops = owned["named_by"].unique()
    return _describe(case, owned, _on_device(case, pl.col("named_by").is_in(ops.implode())))


def _optimizer_on_host(case: Case, owned: pl.DataFrame) -> Finding:
    """The whole update goes to the device: its ops on the host, the copies of gradients and weights, and the waits for them."""
    updates = pl.lit(optimizer_loop.host_time(case))
    items = case.plan.host.filter(updates)["item"].unique().implode()
    inside = pl.col("item").is_in(items)
    smallest = case.plan.with_host(updates, FUSED_OPTIMIZER_LAUNCHES).with_device(inside).without_waits()
    moves = pl.col("event").is_in(over_bus(case).implode())
    moving = case.plan.items.filter(moves)["item"].implode()
    largest = smallest.with_device(moves).with_host(
        pl.col("item").is_in(moving) & (pl.col("cause") != "input")
    )
    detail = f"{case.of_step(case.per_step(owned))} passes while the host updates the weights."
    return timed(case, RULE, owned, Change(smallest, largest), detail, title="The optimizer runs on the host")


def _on_device(case: Case, on_host: pl.Expr) -> Change:
    """The ops take no time, and the host does not wait for their inputs; at most the copies around them go, too."""
    smallest = case.plan.with_host(on_host).without_waits()
    near = case.plan.host.filter(on_host)["item"].unique().cast(pl.Int64)
    around = pl.concat([near + offset for offset in (-1, 0, 1)]).unique()
    moving = case.plan.items.filter(
        pl.col("event").is_in(over_bus(case).implode()), pl.col("item").cast(pl.Int64).is_in(around.implode())
    )["item"].implode()
    moves = pl.col("item").is_in(moving)
    largest = smallest.with_host(moves & (pl.col("cause") != "input")).with_device(moves)
    return Change(
        with_warm_caches(smallest, case.plan, WARM_DISPATCH_WORST), with_warm_caches(largest, case.plan)
    )


def _describe(case: Case, owned: pl.DataFrame, changed: Change) -> Finding:
    names = [
        name for name in case.top_names(owned.filter(pl.col("part").is_in(_COMPUTED_IN)), 1) if name["name"]
    ]
    what = names[0]["name"] if names else "an op"
    detail = f"{case.of_step(case.per_step(owned))} passes while the host computes {what} for the device."
    return timed(case, RULE, owned, changed, detail)


RULE: Rule[Case] = Rule(
    code="cpu-fallback",
    title="Ops run on the host while the device waits",
    turn=90,
    page="ops",
    owns="long ops that launch nothing while the device is idle; a round trip in which the host computes longer than it copies",
    change="they take no time, and the host does not wait for their inputs; at best, the copies around them disappear as well",
    fix={
        "pytorch": "Run this op on the device: keep its inputs there (no .cpu()), or replace it with an op that has a device version.",
        ANY: "Run this op on the device, or replace it with one that can.",
    },
    find=find,
)
