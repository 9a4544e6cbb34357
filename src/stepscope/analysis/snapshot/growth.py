"""Lines whose allocations become larger from pass to pass, such as a cache of keys and values."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.snapshot.passes import find_passes
from stepscope.lazy import dataclass
from stepscope.registers.policy.snapshot import FEWEST_GROWING, GROWN, SITE_SHARE

SITE = ("site_file", "site_line", "site_function")
INNER = ("inner_file", "inner_line", "inner_function")
LASTING = ["parameter", "optimizer state", "gradient", "workspace"]  # they stay by design
_QUARTERS = ("first", "second", "third", "last")


@dataclass(frozen=True)
class Growing:
    """Lines of one function whose allocations become larger and larger, such as a cache of keys and values."""

    lines: tuple[tuple[str, int, str], ...]
    kind: str
    bytes: int
    first_bytes: int
    last_bytes: int


def find_growing(live: pl.DataFrame, allocations: pl.DataFrame, stacks: pl.DataFrame) -> list[Growing]:
    """The functions with such lines, the one that holds most first."""
    total = int(live["bytes"].sum())
    groups = (
        live.drop_nulls("site_file")
        .group_by("kind", *SITE)
        .agg(bytes=pl.col("size").sum())
        .filter(pl.col("bytes") >= SITE_SHARE * total, ~pl.col("kind").is_in(LASTING))
    )
    large = stacks.select("stack", *SITE).join(groups, on=SITE, how="semi")
    named = allocations.select("place", "stack", "bytes").join(large, on="stack").sort("place")
    passed = pl.concat(
        [
            named.select(*SITE, "bytes").clear(),
            *map(_size_passes, named.partition_by(SITE, maintain_order=True)),
        ]
    )
    sizes = (
        passed.group_by(SITE, maintain_order=True)
        .agg(
            pl.len().alias("count"),
            *(_quarter(number).alias(name) for number, name in enumerate(_QUARTERS)),
        )
        .filter(pl.col("count") >= FEWEST_GROWING, pl.col("last") >= GROWN * pl.col("first"))
        # One jump is another batch; what grows does so all the time.
        .filter(pl.col("second") > pl.col("first"), pl.col("third") > pl.col("second"))
    )
    grown = groups.join(sizes, on=SITE).sort("site_line")
    by_function = grown.group_by("kind", "site_file", "site_function", maintain_order=True)
    return sorted((_grown(rows) for _, rows in by_function), key=lambda each: -each.bytes)


def _size_passes(history: pl.DataFrame) -> pl.DataFrame:
    """The bytes of the largest allocation of each pass over a line. Layers differ in size; only passes show a trend."""
    starts = find_passes(history["stack"])
    number = starts.search_sorted(pl.int_range(len(history), eager=True), side="right")
    sizes = history.with_columns(number=number).filter(pl.col("number").is_between(1, len(starts) - 1))
    return (
        sizes.group_by("number", *SITE, maintain_order=True).agg(pl.col("bytes").max()).select(*SITE, "bytes")
    )


def _quarter(number: int) -> pl.Expr:
    return pl.col("bytes").slice(number * pl.len() // 4, pl.len() // 4).median()


def _grown(rows: pl.DataFrame) -> Growing:
    lines = tuple((file, int(line), function) for file, line, function in rows.select(SITE).iter_rows())
    first, last = (int(rows[name].sum()) for name in ("first", "last"))
    return Growing(lines, rows["kind"][0], int(rows["bytes"].sum()), first, last)
