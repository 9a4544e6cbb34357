"""The host's part of a copy to the device: what a runtime does before the bus moves a byte."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.account.host_timeline import within
from stepscope.analysis.findings.answers import infers
from stepscope.analysis.findings.case import Case
from stepscope.analysis.replay.plan import Plan
from stepscope.registers.calibration.launches import (
    LARGE_COPY_BYTES,
    PINNED_RATE_BEST,
    PINNED_RATE_WORST,
)
from stepscope.registers.policy.device_findings import OFFLOADED_BYTES
from stepscope.registers.policy.findings import (
    ARRAYS_OF_A_BATCH,
    BYTES_BEFORE_FLOATS,
    LONG_PYTHON_NS,
    MAJORITY,
    UPLOADS_AFTER_PYTHON,
)
from stepscope.trace.kept import kept_with_trace
from stepscope.trace.lookup import is_named
from stepscope.trace.scopes import ancestors, at_or_inside
from stepscope.trace.trace import Trace

PINNED, PAGEABLE = "(?i)pinned", "(?i)pageable"  # as profilers name the memory of the host
_OF_BYTES = r'"(unsigned char|uint8|byte)"'
_OF_BYTES_FIRST = rf"^\[\s*{_OF_BYTES}"
# They copy what they are given as it is.
_PICKS = r"^aten::(index|index_select|gather|take|stack|cat)$"
_PINS = "aten::pin_memory"
_ON_HOST = r"^(gloo|mpi|ucc):"
_ASKS = r"^c10d::"
_IS_LONG = pl.col("recorded_ns") >= LONG_PYTHON_NS


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
    messages = sent_through_host(case.trace)
    return found.filter(~found.is_in(messages.implode())) if len(messages) else found


@kept_with_trace
def sent_through_host(trace: Trace) -> pl.Series:
    """Copies that are part of communication: gloo and its like send what is on a device through memory of the host, and back."""
    events = trace.events
    on_host = is_named(events, _ON_HOST)
    if trace.copies.is_empty() or not on_host.any():
        return pl.Series(dtype=pl.UInt32)
    inside = at_or_inside(events, on_host | is_named(events, _ASKS))
    launched = trace.links.filter(pl.col("why") == "launch", inside.gather(trace.links["from"]))["to"]
    found: pl.Series = trace.copies.filter(pl.col("event").is_in(launched.implode()))["event"]
    return found


def sends_weights(case: Case) -> bool:
    """Whether more arrays are sent in a step than a batch has."""
    return _count_sent(case) > ARRAYS_OF_A_BATCH * len(case.lengths)


def sends_layers(case: Case, memory: str) -> bool:
    """Whether steps send more large arrays than a batch has from such memory of the host (`PINNED` or `PAGEABLE`): weights, layer by layer."""
    events = case.trace.events
    mine = pl.col("source").cast(pl.String).str.contains(memory).fill_null(False)
    sent = case.trace.copies.filter(pl.col("event").is_in(uploads(case).implode()), mine)
    large = sent.filter(pl.col("bytes") >= OFFLOADED_BYTES)["event"]
    device = case.trace.tracks["device"].gather(events["track"].gather(large))
    inside = events["step"].gather(large).is_in(case.slices["step"].unique().implode())
    return int((inside & (device == case.device)).sum()) > ARRAYS_OF_A_BATCH * case.step_count


def sends_input_alone(case: Case) -> bool:
    """Whether steps of inference send one staged array each: the input, which is another one for each answer."""
    one_each = 0 < _count_sent(case) <= len(case.lengths)
    return one_each and len(case.staging) > 0 and infers(case)


def _count_sent(case: Case) -> int:
    return len(case.plan.items.filter(pl.col("event").is_in(uploads(case).implode())))


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


def send_less(case: Case, plan: Plan, making: pl.Expr, share: float, pinned: bool = False) -> Plan:
    """What takes the result of this work of the host, arrays that are then sent, takes a share of its time: fewer bytes.

    Nor are large arrays freed behind it. `pinned`: the bytes come from pinned memory.
    """
    made = case.plan.host.filter(making, _IS_LONG)["item"].unique()
    sent = case.plan.items.filter(pl.col("event").is_in(uploads(case).implode()))["item"]
    after = sent.filter(within(sent, made, made + UPLOADS_AFTER_PYTHON))
    mine = pl.col("item").is_in(after.implode())
    calls = (mine & pl.col("cause").is_in(["dispatch", "sync", "copy"])) | is_staging(case)
    behind = pl.lit(within(case.plan.host["item"], after, after + UPLOADS_AFTER_PYTHON))
    freed = behind & (pl.col("cause") == "python") & _IS_LONG
    fewer = plan.with_host(calls, share).with_host(freed).with_device(mine, share)
    return fewer.with_device(mine, pl.lit(pinned_share(case, pinned_rates(case)[1]))) if pinned else fewer


def is_mostly_sent(case: Case, making: pl.Expr) -> bool:
    """Whether most of this work of the host comes right before copies to the device, which then take its result."""
    made = case.plan.host.filter(making)
    sent = case.plan.items.filter(pl.col("event").is_in(uploads(case).implode()))["item"]
    sent = sent.cast(pl.Int64)  # the first items have none so far before them
    before = made.filter(_IS_LONG, within(made["item"].cast(pl.Int64), sent - UPLOADS_AFTER_PYTHON, sent))
    return int(before["recorded_ns"].sum()) > MAJORITY * int(made["recorded_ns"].sum())


def reads_bytes(case: Case) -> bool:
    """Whether a long op that the host computes takes tensors of bytes, such as decoded images."""
    events = case.trace.events
    ops = case.trace.ops.select("event", "dtypes").drop_nulls()
    takes = ops["dtypes"].cast(pl.String).str.contains(_OF_BYTES)
    long = events["dur_ns"].gather(ops["event"]) >= LONG_PYTHON_NS
    found = ops["event"].filter(takes & long)
    if found.is_empty():
        return False
    outer = ancestors(events, events["kind"] == "op")
    calls = case.trace.links.filter(pl.col("why") == "launch")["from"]
    not_alone = pl.concat([outer.gather(calls), outer.filter(events["kind"] == "op")]).drop_nulls().unique()
    return not found.is_in(not_alone.implode()).all()


def share_of_bytes(case: Case, making: pl.Expr) -> float:
    """The share of this work of the host that ops spend on bytes which they leave as they are: picking and pinning them.

    Of pinning what was made of the bytes, they take their part.
    """
    events, rows = case.trace.events, case.plan.host.filter(making)
    is_op = events["kind"] == "op"
    inside = at_or_inside(events, events["id"].is_in(rows["event"].implode()))
    launching = events["id"].is_in(case.trace.kernels["op"].drop_nulls().implode())
    outermost = is_op & inside & ~launching & ancestors(events, is_op).is_null()
    mine = case.trace.ops.filter(outermost.gather(case.trace.ops["event"]))
    ops = mine.select(
        is_bytes=pl.col("dtypes").cast(pl.String).str.contains(_OF_BYTES_FIRST).fill_null(False),
        ns=events["dur_ns"].gather(mine["event"]),
        name=events["name"].gather(mine["event"]).cast(pl.String),
    )
    pins = pl.col("name") == _PINS
    kept = pl.col("is_bytes") & (pins | pl.col("name").str.contains(_PICKS))
    left = pl.when(kept).then(1.0).when(pins).then(BYTES_BEFORE_FLOATS).otherwise(0.0)
    ns = float(ops.select((pl.col("ns") * left).sum()).item())
    return min(1.0, ns / max(1, int(rows["recorded_ns"].sum())))


def pinned_share(case: Case, rate: float) -> pl.Series:
    """For each item of the plan what is left of its device time when copies come from pinned memory, whose rate is in bytes per ns."""
    copies = case.trace.copies.filter(_is_pageable()).select("event", "bytes")
    items = case.plan.items.join(copies, on="event", how="left", maintain_order="left")
    found: pl.Series = (
        (items["bytes"] / rate / items["device_ns"]).fill_null(1.0).fill_nan(1.0).clip(0.0, 1.0)
    )
    return found


def pinned_rates(case: Case) -> tuple[float, float]:
    """Bytes per ns from pinned memory, at worst and at best: as this recording shows, else as buses have."""
    copies = case.trace.copies.with_columns(
        dur=case.trace.events["dur_ns"].gather(case.trace.copies["event"])
    )
    pinned = copies.filter(
        pl.col("direction").cast(pl.String).is_in(["HtoD", "DtoH"]),
        ~_is_pageable(),
        pl.col("bytes") > LARGE_COPY_BYTES,
        pl.col("dur") > 0,
    )
    best = (pinned["bytes"] / pinned["dur"]).max()
    return (best, best) if isinstance(best, float) else (PINNED_RATE_WORST, PINNED_RATE_BEST)


def _is_pageable() -> pl.Expr:
    return pl.concat_str(pl.col("source", "target").cast(pl.String).fill_null("")).str.contains(PAGEABLE)
