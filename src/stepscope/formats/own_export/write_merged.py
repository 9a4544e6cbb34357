"""Several ranks as one Chrome trace JSON, in one time: for Perfetto, not for our own reader, which wants a file for each.

Like `export_chrome`, without its header and tables. Each process of each rank is a process of its own, named `Rank 3 · …`
and in the order of ranks; flows are distinguished by the rank in their names. `otherData.stepscope_ranks` says how the
clocks were put together, and how well.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator, Sequence
from typing import cast

import msgspec
import polars as pl

from stepscope.formats.own_export import threads
from stepscope.formats.own_export.lanes import lanes
from stepscope.formats.own_export.write import content, first_time
from stepscope.lazy import dataclass
from stepscope.trace.trace import Trace

RANKS = "stepscope_ranks"


@dataclass(frozen=True)
class RankPart:
    """A rank's trace, and the common time of a column of its own times, in order and ns."""

    rank: int
    trace: Trace
    common: Callable[[pl.Expr], pl.Expr]


def merged_text(parts: Sequence[RankPart], clocks: Sequence[dict[str, object]]) -> Iterator[str]:
    """The file in pieces, each a few tens of megabytes at most. `clocks` says how each rank was placed."""
    zero = min((_first(part) for part in parts if _has_time(part.trace)), default=0)
    head = {"displayTimeUnit": "ns", "baseTimeNanoseconds": zero, "otherData": {RANKS: list(clocks)}}
    yield msgspec.json.encode(head).decode().removesuffix("}") + ',"traceEvents":[\n'
    before, is_first = 0, True
    for part in parts:
        trace = in_common_time(part)
        lane = lanes(trace.events)
        in_use = trace.events.select("track", lane=lane).unique()
        found = threads.threads(trace.tracks, in_use, before, f"Rank {part.rank} · ")
        if not found:
            continue
        before = max(each.tid for each in found)
        yield "" if is_first else ",\n"
        yield from content(trace, lane, found, zero, f" of rank {part.rank}")
        is_first = False
    yield "\n]}\n"


def _has_time(trace: Trace) -> bool:
    return len(trace.events) > 0 or len(trace.counters) > 0


def _first(part: RankPart) -> int:
    own = pl.lit(first_time(part.trace), dtype=pl.Int64)
    return int(pl.select(part.common(own)).item())


def in_common_time(part: RankPart) -> Trace:
    """The trace with its events and counters in the common time. Starts and ends are moved alike, so that they nest as before."""
    trace = part.trace
    start, end = pl.col("start_ns"), pl.col("start_ns") + pl.col("dur_ns")
    events = trace.events.with_columns(
        start_ns=part.common(start), dur_ns=part.common(end) - part.common(start)
    )
    counters = trace.counters.with_columns(time_ns=part.common(pl.col("time_ns")))
    moved = {"events": events, "counters": counters}
    return Trace.over(ChainMap(moved, cast("dict[str, pl.DataFrame]", trace.tables)), trace.cold)
