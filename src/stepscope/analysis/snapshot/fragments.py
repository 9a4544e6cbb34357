"""Memory that the allocator holds and cannot use: free pieces of segments in which something else stays."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.snapshot.lives import ACTIVE
from stepscope.lazy import dataclass


@dataclass(frozen=True)
class Fragments:
    """`pins`: the lines whose blocks stay in segments that are otherwise free: site_*, bytes, segments, holds (free bytes there)."""

    reserved: int
    cached: int
    largest_free: int
    pinned_free: int  # free bytes in segments that hold something
    segments: int
    pinned_segments: int
    pins: pl.DataFrame


def find_fragments(blocks: pl.DataFrame, live: pl.DataFrame) -> Fragments:
    """Of the blocks of one device; `live` are those in use, with their sites."""
    is_free = ~pl.col("state").cast(pl.String).is_in(list(ACTIVE))
    free = pl.col("bytes").filter(is_free)
    segments = blocks.group_by("segment").agg(
        total=pl.col("segment_bytes").first(), free=free.sum(), largest=free.max(), used=(~is_free).sum()
    )
    partly = segments.filter(pl.col("used") > 0, pl.col("free") > 0)
    inside = live.join(partly.select("segment", "free"), on="segment")
    # A segment with several lines in it is held by all of them; its free bytes count for the one that comes last.
    owner = inside.sort("place", nulls_last=False).unique("segment", keep="last", maintain_order=True)
    held = owner.group_by("site_file", "site_line", "site_function").agg(
        pl.col("bytes").sum(), segments=pl.len(), holds=pl.col("free").sum()
    )
    return Fragments(
        reserved=int(segments["total"].sum()),
        cached=int(segments["free"].sum()),
        largest_free=int(segments["largest"].max() or 0),  # type: ignore[arg-type]
        pinned_free=int(partly["free"].sum()),
        segments=len(segments),
        pinned_segments=len(partly),
        pins=held.sort("holds", "site_file", "site_line", descending=[True, False, False]),
    )
