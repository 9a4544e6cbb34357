"""Every allocation of a device, from its request to its release, and what is live when the snapshot is taken."""

from __future__ import annotations

import polars as pl

from stepscope.trace.trace import Trace

ACTIVE = ("active_allocated", "active_pending_free", "active_awaiting_free")


def list_allocations(trace: Trace, device: int) -> pl.DataFrame:
    """place (in the order of the history), time_ns, bytes, requested, address, stack, freed_place, freed_stack."""
    rows = (
        trace.memory.lazy()
        .filter(pl.col("device") == device, pl.col("bytes") != 0)
        .select(
            "time_ns", "bytes", "requested", "address", "stack", place=pl.int_range(pl.len(), dtype=pl.Int64)
        )
        .sort("address", maintain_order=True)
    )
    same = pl.col("address") == pl.col("address").shift(-1)
    freed = same & (pl.col("bytes").shift(-1) < 0)
    return (
        rows.with_columns(
            freed_place=pl.when(freed).then(pl.col("place").shift(-1)),
            freed_stack=pl.when(freed).then(pl.col("stack").shift(-1)),
        )
        .filter(pl.col("bytes") > 0)
        .sort("place")
        .collect()
    )


def until(allocations: pl.DataFrame, place: int) -> pl.DataFrame:
    """The allocations as they were known behind the event at this place: what came later says nothing about them."""
    later = pl.col("freed_place") > place
    return allocations.filter(pl.col("place") <= place).with_columns(
        pl.when(~later).then(name).alias(name) for name in ("freed_place", "freed_stack")
    )


def list_live(trace: Trace, device: int, allocations: pl.DataFrame) -> pl.DataFrame:
    """The blocks in use, with the `place` of their allocation; null where the history does not reach back to it."""
    blocks = trace.blocks.filter(
        pl.col("device") == device, pl.col("state").cast(pl.String).is_in(list(ACTIVE))
    )
    last = allocations.filter(pl.col("freed_place").is_null()).unique(
        "address", keep="last", maintain_order=True
    )
    return blocks.join(last.select("address", "place"), on="address", how="left", maintain_order="left").sort(
        "place", "address", nulls_last=False
    )


def live_at(live: pl.DataFrame, allocations: pl.DataFrame, place: int) -> pl.DataFrame:
    """What was in use behind the event at this place of the history: stack, bytes, place."""
    earlier = live.filter(pl.col("place").is_null()).select("stack", "bytes", "place", "requested")
    recorded = allocations.filter(
        pl.col("place") <= place, pl.col("freed_place").is_null() | (pl.col("freed_place") > place)
    )
    return pl.concat(
        [earlier, recorded.select("stack", "bytes", "place", "requested")], how="vertical_relaxed"
    )
