"""The collectives of one rank's dump as a table, and what it says of its process groups."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.formats.flight_recorder import FORMAT
from stepscope.lazy import dataclass
from stepscope.trace.trace import Trace

DETAILS = "flight_recorder"
DEFAULT_GROUP = "default_pg"
_SCHEMA: dict[str, Any] = {
    "rank": pl.Int64,
    "group": pl.String,
    "title": pl.String,
    "op": pl.String,
    "is_p2p": pl.Boolean,
    "from_rank": pl.Int64,
    "to_rank": pl.Int64,
    "sequence": pl.Int64,
    "record": pl.Int64,
    "is_pending": pl.Boolean,
    "state": pl.String,
    "input_sizes": pl.String,
    "output_sizes": pl.String,
    "dtypes": pl.String,
    "created_ns": pl.Int64,
    "function": pl.String,
    "place": pl.String,
    "stack": pl.String,
}


@dataclass(frozen=True)
class RankCalls:
    """One dump: its collectives in the order of their calls, and the members of each group that it knows."""

    rank: int
    calls: pl.DataFrame
    members: dict[str, list[int]]
    world_size: int | None = None


def is_dump(trace: Trace) -> bool:
    """Whether the trace is a dump of the flight recorder."""
    return trace.info.format == FORMAT.name


def list_calls(trace: Trace, rank: int) -> RankCalls:
    """What the dump of a rank recorded."""
    info = trace.info
    groups = info.capture.get("process_groups")
    members = {
        str(each.get("name", "")): [int(member) for member in each["ranks"]]
        for each in (groups if isinstance(groups, list) else ())
        if isinstance(each, dict) and each.get("ranks")
    }
    details = trace.cold.get(DETAILS)
    if details is None or details.is_empty():
        return RankCalls(rank, pl.DataFrame(schema=_SCHEMA), members, info.world_size)
    names = trace.events.select(event="id", op=pl.col("name").cast(pl.String), track="track")
    tracks = trace.tracks.select(track="id", title=pl.col("thread").str.strip_prefix("group "))
    joined = details.join(names, on="event", maintain_order="left").join(
        tracks, on="track", maintain_order="left"
    )
    calls = joined.with_columns(
        rank=pl.lit(rank, dtype=pl.Int64),
        created_ns=pl.coalesce("created", "started"),
    )
    return RankCalls(rank, calls.select(*_SCHEMA).sort("record"), members, info.world_size)
