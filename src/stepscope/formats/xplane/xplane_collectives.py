"""Collectives of TensorFlow: which group they are of, and which of its calls, by the keys that its workers agree on."""

from __future__ import annotations

import polars as pl

from stepscope.formats.xplane.stats import Stats, values_at


def collectives(events: pl.DataFrame, stats: Stats) -> pl.DataFrame:
    """event, name, group, sequence. Graphs of old give an op one key for ever, which numbers nothing."""
    keys = stats.numbers("instance_key")
    if keys.is_empty():
        return pl.DataFrame()
    group = values_at(keys["owner"], stats.numbers("group_key"))
    found = keys.select(
        event="owner",
        name=events["name"].gather(keys["owner"]),
        group=group.cast(pl.String),
        sequence="value",
    )
    again = pl.struct("name", "group", "sequence").is_duplicated()
    return found.with_columns(sequence=pl.when(~again.any()).then("sequence"))
