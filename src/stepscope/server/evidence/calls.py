"""What the rows of the page's tables are sums of: one row per event, with the columns that identify a row.

All frames have `event` and `weight`, by which the worst comes first; those of the account also have `start_ns` and `end_ns`,
since an event may be charged for less than all of its time.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.collectives.calls import collective_calls
from stepscope.analysis.context import RankContext
from stepscope.analysis.device.copies import copy_calls
from stepscope.analysis.input_pipeline import stage_events
from stepscope.analysis.memory import recorded
from stepscope.analysis.ops.stacks import stacks_of
from stepscope.analysis.phases import phase_spans
from stepscope.reports.columns import without_address
from stepscope.reports.wording.compute import reason_title

LAUNCH = ("grid", "block", "registers", "shared_bytes", "precision", "tensor_cores", "eligible")


def op_events(context: RankContext) -> pl.DataFrame:
    """Calls of ops, by what they cost themselves: on the device, or on the host where the device has no part in any."""
    calls = context.op_calls
    inside = calls.filter(pl.col("step").is_not_null()) if calls["step"].count() else calls
    cost = "device_self_ns" if inside["device_self_ns"].sum() else "host_self_ns"
    kept = inside.filter(~pl.col("repeated"))
    on_device = pl.lit(cost == "device_self_ns")
    return kept.select("event", "name", "scope", "shapes", "placement", weight=cost, on_device=on_device)


def stacked_op_events(context: RankContext) -> pl.DataFrame:
    """The same with the call stack of each, which takes longer."""
    found = op_events(context)
    return found.with_columns(stack=stacks_of(context.trace, found["event"]))


def kernel_events(context: RankContext) -> pl.DataFrame:
    """Kernels inside the steps."""
    return context.kernel_calls.select("event", "name", "op", *LAUNCH, weight="dur_ns")


def account_slices(context: RankContext) -> pl.DataFrame:
    """The account of all devices; `critical` where it is that of the report."""
    slices = context.account.slices
    names = context.trace.events["name"].gather(slices["named_by"])
    return slices.select(
        "device",
        "step",
        "start_ns",
        "end_ns",
        pl.col("part").cast(pl.String),
        event="named_by",
        weight=pl.col("end_ns") - pl.col("start_ns"),
        thread=context.thread_names.gather(slices["thread"]),
        critical=pl.col("device").eq_missing(pl.lit(context.critical_device, dtype=pl.Int32)),
        name=names,
    ).with_columns(without_address("name"))


def phase_events(context: RankContext) -> pl.DataFrame:
    """The program's own outermost annotations in the steps."""
    spans = phase_spans(context.trace, context.steps)
    return spans.select("event", "name", weight=pl.col("end_ns") - pl.col("start_ns"))


def collective_events(context: RankContext) -> pl.DataFrame:
    """Collectives, the longest first: their time includes the wait for late ranks."""
    calls = collective_calls(context.trace, context.account)
    return calls.select("event", "name", "group", "group_size", "dtype", "step", "bytes", weight="dur_ns")


def copy_events(context: RankContext) -> pl.DataFrame:
    """Copies and memsets inside the steps."""
    return copy_calls(context.work).select("event", "direction", "source", "target", weight="dur_ns")


def stage_calls(context: RankContext) -> pl.DataFrame:
    """Events of the input pipeline, by their self time."""
    found = stage_events(context.trace, context.account)
    return found.select("name", event="id", weight="self_ns").with_columns(without_address("name"))


def compute_events(context: RankContext) -> pl.DataFrame:
    """Kernels by where their time goes: what they need at best, what fusion would remove of that, and what is lost."""
    found = context.compute
    kept = found.chains.select(
        "chain", kept=pl.col("bytes_in_out") / pl.col("bytes_total").clip(lower_bound=1)
    )
    kernels = found.kernels.filter(pl.col("time_ns") > 0).join(kept, on="chain", how="left")
    lost_whole = pl.col("reason").is_in(["recomputed", "layout", "unknown"])
    least = pl.when(lost_whole).then(0).otherwise(pl.col("ideal_ns").fill_null(0))
    ideal = (least * pl.col("kept").fill_null(1.0).clip(0.0, 1.0)).floor().cast(pl.Int64)
    pieces = [
        (pl.lit("ideal"), ideal),
        (pl.lit("traffic"), least - ideal),
        (pl.col("reason").cast(pl.String).fill_null("unknown"), pl.col("time_ns") - least),
    ]
    rows = pl.concat([kernels.select("event", reason=why, weight=ns) for why, ns in pieces])
    titles = {name: reason_title(name) for name in rows["reason"].unique()}
    return rows.filter(pl.col("weight") > 0).with_columns(title=pl.col("reason").replace(titles))


def roofline_events(context: RankContext) -> pl.DataFrame:
    """Kernels by class and op, the longest first."""
    kernels = context.compute.kernels.filter(pl.col("time_ns") > 0)
    return kernels.select("event", pl.col("class").cast(pl.String), "op", weight="time_ns")


def allocations(context: RankContext) -> pl.DataFrame:
    """Allocations with the time of their release, and whether they were live at the peak of their device."""
    frames = [_ALLOCATIONS]
    for found in recorded(context.trace):
        rows = found.rows
        peak_at = rows["time_ns"][int(rows["allocated"].arg_max() or 0)]
        freed = pl.col("freed_ns")
        device = "cpu" if found.device_kind == "cpu" else f"{found.device_kind}:{_shown(found.device)}"
        frames.append(
            found.lives.select(
                "event", "kind", "op", "scope", "step", "time_ns", "freed_ns",
                weight="bytes",
                device=pl.lit(device),
                at_peak=(pl.col("time_ns") <= peak_at) & (freed.is_null() | (freed > peak_at)),
            )
        )  # fmt: skip
    return pl.concat(frames, how="vertical_relaxed")


def _shown(device: int | None) -> str:
    return "" if device is None else str(device)


_ALLOCATIONS = pl.DataFrame(
    schema={
        "event": pl.UInt32, "kind": pl.String, "op": pl.String, "scope": pl.String, "step": pl.Int32, "time_ns": pl.Int64,
        "freed_ns": pl.Int64, "weight": pl.Int64, "device": pl.String, "at_peak": pl.Boolean,
    }
)  # fmt: skip
