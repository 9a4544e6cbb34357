"""Links whose ends are known only by track and time: each end is the innermost event there."""

from __future__ import annotations

import polars as pl

from stepscope.native.spans import nesting
from stepscope.trace.columns import buffer, series
from stepscope.trace.frames import take_largest
from stepscope.trace.lookup import parents_of
from stepscope.trace.problems import Problems, problem
from stepscope.trace.schema import LinkReason

NONE = nesting.NO_PARENT


def with_flows(
    links: pl.DataFrame, flows: pl.DataFrame, events: pl.DataFrame, problems: Problems
) -> pl.DataFrame:
    """The links, and those that the flows describe. Flows that begin or end nowhere are counted."""
    if flows.is_empty():
        return links
    if events.is_empty():
        note_loose_flows(problems, len(flows))
        return links
    track_first = _track_offsets(events)
    begin = _innermost(events, track_first, flows["from_track"], flows["from_ns"])
    end = _innermost(events, track_first, flows["to_track"], flows["to_ns"])
    if "to_next" in flows.columns:
        end = pl.select(
            pl.when(flows["to_next"]).then(pl.coalesce(_next(events, flows), end)).otherwise(end)
        ).to_series()
    found = pl.DataFrame({"from": begin, "to": end, "why": flows["why"].cast(LinkReason)})
    found = found.filter(pl.col("from") != NONE, pl.col("to") != NONE, pl.col("from") != pl.col("to"))
    note_loose_flows(problems, len(flows) - len(found))
    return found if links.is_empty() else pl.concat([links.select(found.columns).cast(found.schema), found])


def note_loose_flows(problems: Problems, lost: int) -> None:
    """Count arrows of which one end is not known."""
    if lost:
        problems.add(
            problem(
                "loose-flows",
                "{count} flows start or end where there is no event; they were left out.",
                count=lost,
            )
        )


def _next(events: pl.DataFrame, flows: pl.DataFrame) -> pl.Series:
    """The first event of the track that begins at the flow's end or later, or null."""
    ends = flows.select(track="to_track", start_ns="to_ns").with_row_index("flow").sort("start_ns")
    begins = events.select("track", "start_ns", "id").sort("start_ns", maintain_order=True)
    found = ends.join_asof(begins, on="start_ns", by="track", strategy="forward", check_sortedness=False)
    return found.sort("flow")["id"]


def _track_offsets(events: pl.DataFrame) -> pl.Series:
    """Where each track's rows begin, and the end of the last."""
    tracks = pl.int_range(take_largest(events["track"]) + 2, dtype=pl.UInt32, eager=True)
    found: pl.Series = events["track"].search_sorted(tracks, side="left").cast(pl.UInt32)
    return found


def _innermost(events: pl.DataFrame, track_first: pl.Series, track: pl.Series, time: pl.Series) -> pl.Series:
    last = len(track_first) - 2
    known = track.clip(0, last).cast(pl.UInt32)
    found = nesting.innermost(
        buffer(track_first),
        buffer(events["start_ns"]),
        buffer(events["dur_ns"]),
        parents_of(events),
        buffer(known),
        buffer(time),
    )
    rows = series("found", found, pl.UInt32)
    return pl.select(pl.when(track <= last).then(rows).otherwise(pl.lit(NONE, dtype=pl.UInt32))).to_series()
