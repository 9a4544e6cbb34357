"""Bytes that are in use as a tree of the stacks that allocated them, the outermost frame at the top."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.ops.flame import Flame, finish_nodes
from stepscope.registers.policy.tables import DEEPEST_STACK
from stepscope.trace.trace import Trace

NO_STACK = "(no stack was recorded)"


def flame_of_bytes(trace: Trace, live: pl.DataFrame) -> Flame:
    """`live` has stack, bytes and kind; a node's `like` is a stack that goes through it, its kind what most of it is."""
    stacks = live.group_by("stack").agg(
        pl.col("bytes").sum(), blocks=pl.len().cast(pl.Int64), kind=_largest_kind()
    )
    bare = stacks.filter(pl.col("stack").is_null())
    named = stacks.drop_nulls("stack")
    frames = _outermost_first(trace, named)
    known = frames.select("stack").unique()
    bare = pl.concat([bare, named.join(known, on="stack", how="anti")])
    levels, above = [_bare_node(bare)] if len(bare) else [], None
    count = len(levels)
    for _, level in sorted(frames.partition_by("level", as_dict=True).items()):
        placed, nodes = _merge(level, above, count)
        levels.append(nodes)
        above = placed
        count += len(nodes)
    return finish_nodes(pl.concat(levels, how="vertical_relaxed")) if levels else Flame([], pl.DataFrame())


def _largest_kind() -> pl.Expr:
    return pl.col("kind").sort_by("bytes", descending=True).first()


def _outermost_first(trace: Trace, stacks: pl.DataFrame) -> pl.DataFrame:
    """stack, level, name, bytes, blocks, kind: a row for each frame; bytes are at the innermost alone."""
    frames = trace.frames.join(stacks.select("stack"), on="stack", how="semi").with_columns(
        level=pl.col("depth").max().over("stack").cast(pl.Int64) - pl.col("depth").cast(pl.Int64)
    )
    name = pl.format(
        "{}({}): {}",
        pl.col("file").cast(pl.String).fill_null("?"),
        pl.col("line").fill_null(0),
        pl.col("function").cast(pl.String).fill_null("?"),
    )
    joined = frames.select("stack", "level", name=name).join(stacks, on="stack")
    innermost = pl.min_horizontal(pl.col("level").max().over("stack"), DEEPEST_STACK - 1)
    own = pl.when(pl.col("level") == innermost).then("bytes").otherwise(0)
    return joined.filter(pl.col("level") < DEEPEST_STACK).select(
        "stack", "level", "name", "bytes", "blocks", "kind", own=own
    )


def _bare_node(bare: pl.DataFrame) -> pl.DataFrame:
    return bare.select(
        name=pl.lit(NO_STACK),
        parent=pl.lit(-1, dtype=pl.Int64),
        own=pl.col("bytes").sum(),
        calls=pl.col("blocks").sum(),
        kind=_largest_kind(),
        like=pl.lit(None, dtype=pl.Int64),
    ).head(1)


def _merge(level: pl.DataFrame, above: pl.DataFrame | None, known: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Frames of one level: which node each stack is at, and the nodes, one for each parent and name."""
    parent = pl.lit(-1, dtype=pl.Int64)
    rows = level.with_columns(parent=parent) if above is None else level.join(above, on="stack")
    made = (
        rows.sort("bytes", "stack", descending=[True, False])
        .group_by("parent", "name", maintain_order=True)
        .agg(
            pl.col("own").sum(),
            calls=pl.col("blocks").sum(),
            kind=_largest_kind(),
            like=pl.col("stack").first(),
        )
        .with_row_index("node", offset=known)
        .with_columns(pl.col("node", "like").cast(pl.Int64))
    )
    placed = rows.join(made.select("parent", "name", "node"), on=["parent", "name"])
    return placed.select("stack", parent="node"), made.select(
        "name", "parent", "own", "calls", "kind", "like"
    )
