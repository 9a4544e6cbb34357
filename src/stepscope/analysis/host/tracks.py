"""Facts about tracks, looked up by the track numbers that events carry."""

from __future__ import annotations

import polars as pl

from stepscope.trace.columns import repeated
from stepscope.trace.trace import Trace


def by_track(trace: Trace, fact: pl.Expr) -> pl.Series:
    """A column of the tracks, or an expression on them, with the row number that is the track's id; else null."""
    found = trace.tracks.select("id", fact.alias("fact"))
    size = 1 + int(found["id"].sort()[-1]) if len(found) else 0
    return repeated(None, size, found["fact"].dtype).scatter(found["id"], found["fact"])
