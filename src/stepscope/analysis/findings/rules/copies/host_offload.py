"""Compiled programs that keep arrays in the host's memory, and wait for them."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.promise import saving
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.staging import over_bus
from stepscope.analysis.xla.file_work import core_copies
from stepscope.registers.policy.findings import WORTH_SHOWING
from stepscope.units import size


def find(case: Case) -> Finding | None:
    """Waits of a core for copies between its memory and the host's that the program itself asks for."""
    offloaded = core_copies(case.trace)
    offloaded = offloaded.filter(offloaded.is_in(over_bus(case).implode()))
    owned = case.free(pl.col("part") == "copy", pl.col("named_by").is_in(offloaded.implode()))
    ns = case.per_step(owned)
    if ns < WORTH_SHOWING * case.step_ns:
        return None
    moved = _bytes_per_step(case)
    size_of = f" for {size(moved)} that the program moves between the device and the host" if moved else ""
    evidence = {"names": case.top_names(owned), "bytes_per_step": moved or None, "estimate": "account"}
    case.claim(owned)
    return saving(case, RULE, ns, _left(case, ns), f"{case.of_step(ns)} waits{size_of}.", evidence)


def _left(case: Case, ns: int) -> Interval:
    """At least as much is hidden as there is computation to hide it behind; at most the arrays stay on the device."""
    computing = case.per_step(case.slices.filter(pl.col("part") == "compute"))
    kept, hidden = (1 - gone / case.step_ns for gone in (ns, min(computing, ns)))
    return Interval(kept, (kept * hidden) ** 0.5, hidden)


def _bytes_per_step(case: Case) -> int:
    """What the copies of the case's device move in a usual step."""
    events = case.trace.events
    rows = case.trace.copies.filter(pl.col("event").is_in(over_bus(case).implode()))
    track = events["track"].gather(rows["event"])
    mine = case.trace.tracks["device"].gather(track) == case.device
    inside = events["step"].gather(rows["event"]).is_in(case.slices["step"].unique().implode())
    return int(int(rows.filter(mine & inside)["bytes"].sum()) / case.step_count)


RULE: Rule[Case] = Rule(
    code="host-offload",
    title="The device waits for arrays that are kept in host memory",
    turn=155,
    page="device",
    owns="`copy` between device and host that a compiled program waits for",
    change="at worst, as much of it is hidden as there is computation; at best, the arrays stay on the device",
    fix={
        "jax": "Keep the arrays on the device (memory_kind='device') as far as memory allows: offload only what is large and used once a step, in few large arrays, and start each copy a layer ahead so that computation hides it.",
        ANY: "Keep the arrays on the device as far as memory allows, and start copies early enough for computation to hide them.",
    },
    find=find,
    needs_device=True,
)
