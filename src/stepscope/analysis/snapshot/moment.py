"""The segments of a device at one moment, each with its blocks in the order of their addresses.

What the allocator reserved is known for the end alone. For an earlier moment the blocks that were in use are put into the segments of
the end, and the rest of these is free; a block outside all of them was in a segment that has been given back, whose size is not known.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.snapshot.growth import SITE
from stepscope.analysis.snapshot.history import History
from stepscope.analysis.snapshot.lives import ACTIVE
from stepscope.lazy import dataclass
from stepscope.registers.policy.snapshot import GRANULE

FREE, GONE, SMALL = "free", "given back", "small"
_PIECES = ("segment", "address", "bytes", "kind", "requested", "stack", "time_ns", "count")


@dataclass(frozen=True)
class Moment:
    """`segments`: segment (its address), bytes, segment_kind, stream. `pieces`: segment, address, bytes, kind, requested, stack,
    time_ns, count (1, or of how many small ones it is made), site_*. `live`: what is in use, one row each."""

    segments: pl.DataFrame
    pieces: pl.DataFrame
    live: pl.DataFrame


def look_at(history: History, place: int | None) -> Moment:
    """Behind the event at this place; None for the end, as the snapshot has it."""
    live = history.live_at(history.last if place is None else place)
    ends = history.blocks.group_by("segment").agg(
        bytes=pl.col("segment_bytes").first(),
        segment_kind=pl.col("segment_kind").first().cast(pl.String),
        stream=pl.col("stream").first(),
    )
    if place is None:
        found = _with_gaps(_at_end(history, live), ends)
        return Moment(_sorted(ends), _named(found, history), live)
    inside = _put_into(live, ends)
    gone = _given_back(inside.filter(pl.col("segment").is_null()).drop("segment"))
    placed = pl.concat([inside.drop_nulls("segment"), gone.drop("segment_bytes")], how="diagonal_relaxed")
    extents = gone.group_by("segment").agg(bytes=pl.col("segment_bytes").first()).with_columns(
        segment_kind=pl.lit(GONE), stream=pl.lit(None, dtype=pl.Int64)
    )  # fmt: skip
    segments = pl.concat([ends, extents], how="vertical_relaxed")
    return Moment(_sorted(segments), _named(_with_gaps(placed, ends), history), live)


def blocks_at(history: History, place: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The blocks behind the event at this place as the snapshot has those of the end, and those in use with their lines."""
    found = look_at(history, place)
    segments = found.segments.select("segment", segment_bytes="bytes")
    state = pl.when(pl.col("kind") == FREE).then(pl.lit("inactive")).otherwise(pl.lit(ACTIVE[0]))
    blocks = found.pieces.with_columns(state=state).join(segments, on="segment")
    places = found.live.select("address", "place").unique("address", keep="last")
    in_use = blocks.filter(pl.col("kind") != FREE).join(places, on="address", how="left")
    return blocks, in_use


def _sorted(segments: pl.DataFrame) -> pl.DataFrame:
    return segments.sort("segment")


def _at_end(history: History, live: pl.DataFrame) -> pl.DataFrame:
    """The blocks of the snapshot, in use or free."""
    known = live.unique("address", keep="last").select("address", "kind")
    is_active = pl.col("state").cast(pl.String).is_in(list(ACTIVE))
    kind = pl.when(is_active).then(pl.col("kind").fill_null("unknown")).otherwise(pl.lit(FREE))
    joined = history.blocks.join(known, on="address", how="left").with_columns(
        kind=kind, count=pl.lit(1, dtype=pl.Int64)
    )
    return joined.with_columns(stack=pl.when(is_active).then("stack")).select(_PIECES)


def _put_into(live: pl.DataFrame, segments: pl.DataFrame) -> pl.DataFrame:
    """Each block with the segment that its address is in; null where there is none."""
    bounds = segments.select("segment", until=pl.col("segment") + pl.col("bytes").cast(pl.UInt64)).sort(
        "segment"
    )
    joined = live.sort("address").join_asof(
        bounds.with_columns(begin="segment"), left_on="address", right_on="begin"
    )
    return joined.with_columns(
        segment=pl.when(pl.col("address") < pl.col("until")).then("segment"),
        count=pl.lit(1, dtype=pl.Int64),
    ).select(_PIECES)


def _given_back(blocks: pl.DataFrame) -> pl.DataFrame:
    """Neighbours are taken for one segment."""
    end = (pl.col("address") + pl.col("bytes").cast(pl.UInt64)).cum_max()
    low = pl.col("address") // GRANULE * GRANULE
    high = (end + (GRANULE - 1)) // GRANULE * GRANULE
    placed = blocks.sort("address").with_columns(low=low, high=high)
    group = (pl.col("low") > pl.col("high").shift(1)).fill_null(False).cum_sum()
    return (
        placed.with_columns(
            segment=pl.col("low").min().over(group), segment_end=pl.col("high").max().over(group)
        )
        .with_columns(segment_bytes=(pl.col("segment_end") - pl.col("segment")).cast(pl.Int64))
        .drop("low", "high", "segment_end")
    )


def _with_gaps(placed: pl.DataFrame, segments: pl.DataFrame) -> pl.DataFrame:
    """The blocks, and the free memory between, before and behind them."""
    edges = placed.select("segment", "address", end=pl.col("address") + pl.col("bytes").cast(pl.UInt64))
    starts = segments.select("segment", address="segment", end="segment")
    stops = segments.select(
        "segment",
        address=pl.col("segment") + pl.col("bytes").cast(pl.UInt64),
        end=pl.col("segment") + pl.col("bytes").cast(pl.UInt64),
    )
    known = edges.join(segments.select("segment"), on="segment", how="semi")
    ordered = pl.concat([starts, known, stops]).sort("segment", "address", "end")
    before = pl.col("end").cum_max().shift(1).over("segment")
    gaps = ordered.with_columns(before=before).filter(pl.col("before") < pl.col("address"))
    free = gaps.select(
        "segment",
        address="before",
        bytes=(pl.col("address") - pl.col("before")).cast(pl.Int64),
        kind=pl.lit(FREE),
        count=pl.lit(1, dtype=pl.Int64),
    )
    return pl.concat([placed, free], how="diagonal_relaxed").select(_PIECES)


def _named(pieces: pl.DataFrame, history: History) -> pl.DataFrame:
    sites = history.stacks.select("stack", *SITE)
    return pieces.join(sites, on="stack", how="left").sort("segment", "address")


def merge_small(pieces: pl.DataFrame, most: int, chosen: int | None = None) -> pl.DataFrame:
    """The largest pieces one by one, and neighbours among the others as one; `chosen` is the address of one that stays."""
    if len(pieces) <= most:
        return pieces
    rank = pl.col("bytes").rank("ordinal", descending=True)
    stays = (rank <= most) | (pl.col("address") == (chosen if chosen is not None else -1))
    marked = pieces.with_columns(stays=stays).with_columns(
        run=(pl.col("stays") | (pl.col("stays").shift(1)) | (pl.col("segment") != pl.col("segment").shift(1)))
        .fill_null(True)
        .cum_sum()
    )
    return marked.group_by("run", maintain_order=True).agg(_join_pieces(pieces)).select(pieces.columns)


def _join_pieces(pieces: pl.DataFrame) -> list[pl.Expr]:
    is_one = pl.len() == 1
    only = [name for name in pieces.columns if name not in ("segment", "address", "bytes", "kind", "count")]
    same = pl.when(pl.col("kind").n_unique() == 1).then(pl.col("kind").first()).otherwise(pl.lit(SMALL))
    return [
        pl.col("segment", "address").first(),
        pl.col("bytes", "count").sum(),
        same.alias("kind"),
        *(pl.when(is_one).then(pl.col(name).first()).alias(name) for name in only),
    ]
