"""Copies that nothing hides."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.account.host_timeline import within
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.change import Change, with_warm_caches
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.profiler_doubt import withdraw
from stepscope.analysis.findings.promise import of_part
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.rules.copies.host_offload import KEEP_WEIGHTS
from stepscope.analysis.findings.transfers.copy_items import copy_items
from stepscope.analysis.findings.transfers.staging import (
    PAGEABLE,
    is_staging,
    over_bus,
    pinned_rates,
    pinned_share,
    sends_input_alone,
    sends_layers,
    sends_weights,
    uploads,
)
from stepscope.analysis.replay.plan import Plan
from stepscope.analysis.xla.file_work import core_copies
from stepscope.native.host import replay as native
from stepscope.registers.calibration.launches import STAGED_COPY_NS
from stepscope.registers.calibration.profiler import WARM_DISPATCH_WORST
from stepscope.registers.policy.findings import MAJORITY, WORTH_SHOWING

MOSTLY_READS = "mostly_to_host"  # in the evidence
WEIGHTS = "weights"  # in the evidence
_OF_WEIGHTS = (
    " Each step sends more large arrays than a batch has, as where weights are kept in the host's memory."
)
_OF_INPUT = " It is the input of the step's answer: whether the next one is there in time to be sent earlier, a profile does not show."
_FIX_OF_READS = {
    "pytorch": "Copy to the host less often, or while the device computes: with non_blocking=True into pinned memory, on a side stream, and use the copy a step later.",
    "jax": "Copy to the host less often, or while the device computes: x.copy_to_host_async() first, and read it a step later.",
    ANY: "Copy to the host less often, or while the device computes, and use the copy a step later.",
}
_FIX_OF_WEIGHTS = f"{KEEP_WEIGHTS} Send what stays offloaded from pinned memory, which takes a fraction of the time, a layer ahead on a stream of its own."
_FIX_OF_INPUT = "Hand over one or two more inputs with jax.device_put before reading results, if they are known ahead; send as few bytes as possible (uint8 pictures, converted on the device)."


def find(case: Case) -> Finding | None:
    """Copies that nothing hides."""
    moving = copy_items(case).filter(pl.col("direction").is_in(["HtoD", "DtoH"]))
    waits = core_copies(case.trace)
    if len(waits):
        return _in_program(case, waits)
    copying = pl.col("part").is_in(["copy", "sync"]) & pl.col("named_by").is_in(over_bus(case).implode())
    owned = case.free(copying | ((pl.col("part") == "dispatch") & is_staging(case)))
    if case.per_step(owned) < WORTH_SHOWING * case.step_ns:
        return None
    found = of_part(case, RULE, owned, lambda: _copied_beside(case, moving))
    if found is not None and sends_input_alone(case):
        _advise(case, found)
    elif found is not None and not case.is_tpu and _mostly_reads(case, owned):
        found.fix = _FIX_OF_READS.get(case.trace.info.framework or ANY) or _FIX_OF_READS[ANY]
        found.evidence = {**found.evidence, MOSTLY_READS: True}
    elif found is not None and not case.runs_programs and sends_layers(case, PAGEABLE):
        found.detail += _OF_WEIGHTS
        found.fix = _FIX_OF_WEIGHTS
        found.evidence = {**found.evidence, WEIGHTS: True}
    return found


def _mostly_reads(case: Case, owned: pl.DataFrame) -> bool:
    """Whether most of the time is of copies to the host: no loader and no earlier input shortens these."""
    read = case.trace.copies.filter(pl.col("direction").cast(pl.String) == "DtoH")["event"]
    return int(owned.filter(pl.col("named_by").is_in(read.implode()))["ns"].sum()) > MAJORITY * int(
        owned["ns"].sum()
    )


def _advise(case: Case, found: Finding) -> None:
    """An input is neither kept on the device nor staged by anybody but the runtime; only what is there ahead is sent ahead."""
    withdraw(found)
    case.changes.pop(RULE.code, None)
    found.detail += _OF_INPUT
    found.fix = _FIX_OF_INPUT


def _in_program(case: Case, waits: pl.Series) -> Finding | None:
    """What cores of TPUs wait for inside a program, from wherever; replayed, it comes in time."""
    mine = waits.implode()
    owned = case.free(pl.col("part") == "copy", pl.col("named_by").is_in(mine))
    return of_part(case, RULE, owned, lambda: case.plan.with_device(pl.col("event").is_in(mine)))


def _copied_beside(case: Case, moving: pl.DataFrame) -> Change:
    """At least the copies run beside the rest; at most, what the host keeps sending stays on the device."""
    worst, best = (_hidden(case, moving, rate) for rate in pinned_rates(case))
    staged = case.plan.host.filter(is_staging(case))["item"]
    sent = pl.col("event").is_in(uploads(case).implode())
    if staged.is_empty():
        keeps = not case.runs_programs and sends_layers(case, PAGEABLE)
        return Change(worst, best.with_device(sent) if keeps else best)
    calls = pl.col("item").is_in(case.plan.items.filter(sent)["item"].implode())
    kept = best.with_host(is_staging(case) | (calls & (pl.col("cause") != "python"))).with_device(sent)
    at_most = with_warm_caches(kept, case.plan)
    surely = kept if sends_weights(case) else worst.with_host(is_staging(case))
    return Change(with_warm_caches(surely, case.plan, WARM_DISPATCH_WORST), at_most)


def _hidden(case: Case, moving: pl.DataFrame, rate: float) -> Plan:
    """The copies run beside the rest, from pinned memory, whose rate is in bytes per ns."""
    # A copy from pageable memory makes the host wait until it is done, and copies once more on the host.
    staged = pl.col("item").is_in(moving["item"].implode()) & pl.col("cause").is_in(
        ["dispatch", "sync", "copy"]
    )
    blocking = within(case.plan.items["item"], moving["item"], moving["item"] + 2)
    results, waits = _results(case)
    return (
        case.plan.with_device(pl.lit(True), pl.lit(pinned_share(case, rate)))
        .with_host(staged & (pl.col("recorded_ns") >= STAGED_COPY_NS))
        .without_waits(pl.lit(blocking & ~waits))
        .on_own_stream(pl.col("event").is_in(moving["event"].implode()) & ~pl.lit(results))
    )


def _results(case: Case) -> tuple[pl.Series, pl.Series]:
    """Which items of the plan are copies to the host that it waits for, and which are these waits.

    The host waits for the kernels whose result they bring, from whatever memory: the copy comes after them, not at the same time.
    Only a program that reads the result later does without the wait, and that is for `device-sync` to say.
    """
    copies = case.trace.copies.select("event", read=pl.col("direction").cast(pl.String) == "DtoH")
    items = case.plan.items.join(copies, on="event", how="left", maintain_order="left")
    is_wait, read = pl.col("kind") == native.WAIT, pl.col("read").fill_null(False)
    before = pl.when(~is_wait).then(read).forward_fill()
    behind = pl.when(~read).then(is_wait).backward_fill()
    found = items.select(results=~is_wait & read & behind, waits=is_wait & before)
    return found["results"].fill_null(False), found["waits"].fill_null(False)


RULE: Rule[Case] = Rule(
    code="exposed-copy",
    title="The device waits for copies",
    title_without_device="The step waits for copies",
    turn=160,
    page="device",
    owns="`copy` between host and device, waits for such copies, and the staging of host arrays, but not copies that are part of communication; on a TPU, all copies that programs wait for",
    change="copies overlap with other work, from pinned memory, and are staged in the background, but the host still waits for results that it reads; at best, host arrays that are sent repeatedly stay on the device; even at worst if a step sends more arrays than a batch has. Where eager steps send more than five arrays of 16 MiB from pageable memory, as weights that are kept on the host, these stay on the device at best. Where each step of JAX inference sends one array, its input, the finding is advice",
    fix={
        "pytorch": "Copy while the device computes: pin_memory=True in the DataLoader, .to(device, non_blocking=True), and fetch the next batch on a side stream.",
        "jax": "Send arrays once: params = jax.device_put(params) before the loop instead of NumPy arrays in every call; hand the next batch over with jax.device_put while the device computes.",
        ANY: "Copy the next batch while the device computes, from pinned memory.",
    },
    find=find,
)
