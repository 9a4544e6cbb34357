"""What was copied between memories: how often, how much, how fast, and how much of it the device waited for.

One row for each direction, source and target memory (pageable or pinned, where recorded); device-side fills are rows of
direction `memset`. GB/s is bytes over the time of the copies. Exposed is the time in which a copy ran and no kernel did.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.account.account import Account
from stepscope.analysis.xla.file_work import core_copies
from stepscope.trace.frames import conform
from stepscope.trace.trace import Trace

_ROWS = {
    "direction": pl.String,
    "source": pl.String,
    "target": pl.String,
    "calls": pl.UInt32,
    "bytes": pl.Int64,
    "total_ns": pl.Int64,
    "exposed_ns": pl.Int64,
    "gb_per_s": pl.Float64,
}
_PLACES = ("direction", "source", "target")


def copies_table(trace: Trace | None, account: Account | None) -> pl.DataFrame:
    """Rows of the report's copies, the longest in total first."""
    if trace is None:
        return pl.DataFrame(schema=_ROWS)
    rows = (
        copy_calls(trace)
        .with_columns(waits=pl.col("event").is_in(_waits(trace).implode()))
        .join(_exposed(account), on="event", how="left", maintain_order="left")
    )
    exposed = pl.col("exposed_ns").sum() if account is not None else pl.lit(None, dtype=pl.Int64)
    # What a core waits is less than what the copy takes.
    waits = pl.col("event").is_in(core_copies(trace).implode())
    moved = pl.col("bytes").is_not_null() & (pl.col("dur_ns") > 0) & ~waits
    grouped = rows.group_by(_PLACES, maintain_order=True).agg(
        (~pl.col("waits")).sum().cast(pl.UInt32).alias("calls"),
        pl.when(pl.col("bytes").count() > 0).then(pl.col("bytes").sum()).alias("bytes"),
        pl.col("dur_ns").filter(~pl.col("waits")).sum().alias("total_ns"),
        exposed.alias("exposed_ns"),
        (pl.col("bytes").filter(moved).sum() / pl.col("dur_ns").filter(moved).sum()).alias("gb_per_s"),
    )
    told = pl.when(pl.col("gb_per_s").is_finite()).then("gb_per_s").alias("gb_per_s")
    return conform(grouped.with_columns(told), _ROWS).sort("total_ns", descending=True, maintain_order=True)


def _waits(trace: Trace) -> pl.Series:
    """Waits of TPUs' cores for copies that the trace also shows."""
    waits = core_copies(trace)
    moving = trace.copies.filter(pl.col("bytes").is_not_null())["event"]
    return waits.filter(~waits.is_in(moving.implode())) if len(moving) else waits.clear()


def copy_calls(trace: Trace) -> pl.DataFrame:
    """One row per copy or memset inside the steps: event, direction, source, target, bytes, dur_ns."""
    work = trace.events.filter(pl.col("kind").is_in(["copy", "memset"]))
    if trace.events["step"].count():
        work = work.filter(pl.col("step").is_not_null())
    rows = work.select(pl.col("id").alias("event"), "kind", "dur_ns")
    rows = rows.join(trace.copies, on="event", how="left", maintain_order="left")
    is_memset = pl.col("kind") == "memset"
    text = (
        pl.col("direction").cast(pl.String),
        pl.col("source", "target").cast(pl.String).str.to_lowercase(),
    )
    return rows.with_columns(*text).with_columns(
        direction=pl.when(is_memset).then(pl.lit("memset")).otherwise("direction"),
        source=pl.when(~is_memset).then("source"),
        target=pl.when(~is_memset).then("target"),
    )


def _exposed(account: Account | None) -> pl.DataFrame:
    """event, exposed_ns."""
    if account is None:
        return pl.DataFrame(schema={"event": pl.UInt32, "exposed_ns": pl.Int64})
    slices = account.slices.filter(pl.col("part") == "copy")
    length = (pl.col("end_ns") - pl.col("start_ns")).sum().alias("exposed_ns")
    return slices.group_by(pl.col("named_by").cast(pl.UInt32).alias("event")).agg(length)
