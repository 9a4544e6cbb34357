"""The whole history of a device, as a page that goes through it needs it: every allocation with its kind, also those from before."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.snapshot.kinds import with_kinds
from stepscope.analysis.snapshot.lives import list_allocations, list_live
from stepscope.analysis.snapshot.stacks import describe_stacks
from stepscope.analysis.snapshot.unseen import fill_stacks
from stepscope.lazy import dataclass
from stepscope.trace.trace import Trace


@dataclass(frozen=True)
class History:
    """`lives`: place (null before the history), freed_place, address, bytes, requested, stack, kind, time_ns. `rows`: time_ns and totals by place."""

    rows: pl.DataFrame
    lives: pl.DataFrame
    blocks: pl.DataFrame
    stacks: pl.DataFrame

    @property
    def last(self) -> int:
        """The place of the last event; -1 where there is no history."""
        return len(self.rows) - 1

    def place_at(self, time_ns: int) -> int:
        """The last event until then."""
        return int(self.rows["time_ns"].search_sorted(time_ns, side="right")) - 1

    def live_at(self, place: int) -> pl.DataFrame:
        """What was in use behind the event at this place."""
        born = pl.col("place").is_null() | (pl.col("place") <= place)
        return self.lives.filter(born, pl.col("freed_place").is_null() | (pl.col("freed_place") > place))


def follow(trace: Trace, device: int) -> History:
    """The history of one device of a snapshot."""
    trace = fill_stacks(trace)
    stacks = describe_stacks(trace)
    allocations = list_allocations(trace, device)
    at_end = list_live(trace, device, allocations)
    recorded = allocations.select(*_SHARED, "freed_place", "requested")
    earlier = at_end.filter(pl.col("place").is_null()).select(
        *_SHARED, "requested", freed_place=pl.lit(None, dtype=pl.Int64)
    )
    lives = pl.concat([earlier, recorded, _released_later(trace, device)], how="diagonal_relaxed")
    named = with_kinds(lives, allocations, stacks).select(*lives.columns, "kind")
    rows = trace.memory.filter(pl.col("device") == device)
    return History(
        rows=rows.select("time_ns", "total_allocated", "total_reserved"),
        lives=named,
        blocks=trace.blocks.filter(pl.col("device") == device),
        stacks=stacks,
    )


_SHARED = ("place", "address", "bytes", "stack", "time_ns")


def _released_later(trace: Trace, device: int) -> pl.DataFrame:
    """What was there before the history and was released in it: no allocation comes before the release."""
    rows = (
        trace.memory.lazy()
        .filter(pl.col("device") == device)
        .select("bytes", "address", place=pl.int_range(pl.len(), dtype=pl.Int64))
        .sort("address", maintain_order=True)
        .with_columns(
            is_known=(pl.col("address") == pl.col("address").shift(1)) & (pl.col("bytes").shift(1) > 0)
        )
    )
    return (
        rows.filter(pl.col("bytes") < 0, ~pl.col("is_known").fill_null(False))
        .select(
            "address",
            place=pl.lit(None, dtype=pl.Int64),
            bytes=-pl.col("bytes"),
            requested=-pl.col("bytes"),
            freed_place="place",
        )
        .collect()
    )
