"""Compiled programs that keep arrays in the host's memory, and models that keep their weights there, and wait for them."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.profiler_doubt import withdraw
from stepscope.analysis.findings.promise import no_more_than, saving
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.transfers.staging import PINNED, over_bus, sends_layers
from stepscope.analysis.xla.file_work import core_copies
from stepscope.registers.policy.findings import MAJORITY, WORTH_A_FINDING, WORTH_SHOWING
from stepscope.units import duration, size

KEEP_WEIGHTS = "Keep weights on the device as far as memory allows: offload fewer layers (device_map and max_memory of accelerate; FSDP: a CPUOffloadPolicy for some modules only), or keep them in 8 or 4 bits so that they fit."


def find(case: Case) -> Finding | None:
    """Waits for copies that a program asks for itself, or that bring the weights of a model layer by layer."""
    offloaded = core_copies(case.trace)
    return _in_programs(case, offloaded) if case.runs_programs or len(offloaded) else _of_weights(case)


def _of_weights(case: Case) -> Finding | None:
    """Weights come from pinned memory already, and seldom fit onto the device: only what computation can hide is promised."""
    owned = case.free(
        pl.col("part").is_in(["copy", "sync"]), pl.col("named_by").is_in(over_bus(case).implode())
    )
    ns = case.per_step(owned)
    computing = _computing(case)
    if ns < WORTH_A_FINDING * case.step_ns or computing > MAJORITY * ns or not sends_layers(case, PINNED):
        return None
    moved, hidden = _bytes_per_step(case), min(computing, ns)
    case.claim(owned)
    detail = (
        f"{case.of_step(ns)} waits for {size(moved)} that are copied between the device and pinned memory of the host in every step. "
        f"The {duration(computing)} of computation can hide no more than that."
    )
    evidence = {"names": case.top_names(owned), "bytes_per_step": moved, "estimate": "account"}
    found = saving(case, RULE, ns, _left_of_hidden(case, hidden), detail, evidence)
    if hidden < WORTH_SHOWING * case.step_ns:
        withdraw(found)
        return found
    return no_more_than(case, found, hidden)


def _left_of_hidden(case: Case, hidden: float) -> Interval:
    """At worst nothing more is hidden than is already."""
    low = 1 - hidden / case.step_ns
    return Interval(low, low**0.5, 1.0)


def _in_programs(case: Case, offloaded: pl.Series) -> Finding | None:
    """Waits of a core for copies between its memory and the host's that the program itself asks for."""
    offloaded = offloaded.filter(offloaded.is_in(over_bus(case).implode()))
    owned = case.free(pl.col("part") == "copy", pl.col("named_by").is_in(offloaded.implode()))
    ns = case.per_step(owned)
    if ns < WORTH_SHOWING * case.step_ns:
        return None
    moved = _bytes_per_step(case)
    size_of = f" for {size(moved)} that the program moves between the device and the host" if moved else ""
    evidence = {"names": case.top_names(owned), "bytes_per_step": moved or None, "estimate": "account"}
    case.claim(owned)
    detail, computing = f"{case.of_step(ns)} waits{size_of}.", _computing(case) / case.step_ns
    return saving(case, RULE, ns, _left(case, ns), detail, evidence, work=computing)


def _left(case: Case, ns: int) -> Interval:
    """At least as much is hidden as there is computation to hide it behind; at most the arrays stay on the device."""
    kept, hidden = (1 - gone / case.step_ns for gone in (ns, min(_computing(case), ns)))
    return Interval(kept, (kept * hidden) ** 0.5, hidden)


def _computing(case: Case) -> int:
    """How long the device computes in a step."""
    return case.per_step(case.slices.filter(pl.col("part") == "compute"))


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
    owns="`copy` between device and host that a compiled program waits for; where eager steps send more than five arrays of 16 MiB from pinned memory and compute less than half as long as they copy, all copies over the bus and the waits for them",
    change="at worst, as much of it is hidden as there is computation; at best, the arrays stay on the device; advice if that may be nothing or a speed-up of more than 15. For eager steps at best as much is hidden as there is computation; below 3 % of the step the finding is advice",
    fix={
        "pytorch": f"{KEEP_WEIGHTS} What stays offloaded: compute more with each copy (a larger batch), and fetch a layer ahead on a stream of its own.",
        "jax": "Keep the arrays on the device (memory_kind='device') as far as memory allows: offload only what is large and used once a step, in few large arrays, and start each copy a layer ahead so that computation hides it.",
        ANY: "Keep the arrays on the device as far as memory allows, and start copies early enough for computation to hide them.",
    },
    find=find,
    needs_device=True,
)
