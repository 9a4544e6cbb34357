"""Weights that nothing trains: a teacher, a reference, an average of the weights."""

from __future__ import annotations

import polars as pl

from stepscope.registers.policy.snapshot import MOSTLY


def find_frozen(live: pl.DataFrame) -> frozenset[tuple[str, int]]:
    """File and line of those models. `live` has kind, site_*, bytes and place.

    A weight that is trained has a gradient or state of its size. A copy has the sizes of the model that was made before it.
    """
    trained = live.filter(pl.col("kind").is_in(["gradient", "optimizer state"]))["bytes"].unique()
    if trained.is_empty():
        return frozenset()
    models = (
        live.filter(pl.col("kind") == "parameter")
        .drop_nulls("site_file")
        .group_by("site_file", "site_line")
        .agg(
            sizes=pl.col("bytes").sort(),
            untrained=pl.col("bytes").filter(~pl.col("bytes").is_in(trained.implode())).sum()
            / pl.col("bytes").sum(),
            made=pl.col("place").min(),
        )
        .sort("made", nulls_last=False)
    )
    is_copy = models.select(~pl.col("sizes").is_first_distinct()).to_series()
    found = models.filter(is_copy | (pl.col("untrained") > MOSTLY))
    return frozenset(
        (file, int(line or 0)) for file, line in found.select("site_file", "site_line").iter_rows()
    )
