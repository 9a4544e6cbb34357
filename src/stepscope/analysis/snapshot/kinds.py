"""What an allocation is for, by its stack and by how others of the same stack ended.

PyTorch runs the backward pass on a thread of its own, which has no Python stack: an allocation of the history without one, among
others that have one, is of the backward pass. What the forward pass allocates and the backward pass releases is an activation.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.snapshot.stacks import FLAGS
from stepscope.registers.policy.snapshot import MOSTLY, SHORT_LIFE

# By PyTorch's getChosenWorkspaceSize (Hopper and newer; older) and the workspace of cublasLt.
_WORKSPACES = [32 << 20, 8_519_680, 1 << 20]
_GRADIENT, _TEMPORARY = pl.lit("gradient"), pl.lit("temporary")


def with_kinds(live: pl.DataFrame, allocations: pl.DataFrame, stacks: pl.DataFrame) -> pl.DataFrame:
    """The rows with the site of their stack and a `kind`."""
    habits = _habits(allocations, stacks)
    joined = live.join(stacks, on="stack", how="left", maintain_order="left").join(
        habits, on="stack", how="left", maintain_order="left"
    )
    has_stacks = allocations["stack"].count() > 0
    joined = joined.with_columns(
        pl.col(FLAGS).fill_null(False), pl.col("released", "by_backward", "by_others").fill_null(0.0)
    )
    joined = joined.with_columns(workspace=joined["workspace"] | _seems_workspace(joined, allocations))
    of_backward = (pl.col("stack").is_null() & pl.col("place").is_not_null() & pl.lit(has_stacks)) | pl.col(
        "backward"
    )
    joined = joined.with_columns(of_backward=of_backward).with_columns(kind=_KIND)
    return joined.with_columns(kind=_tell_gradients(joined))


def _habits(allocations: pl.DataFrame, stacks: pl.DataFrame) -> pl.DataFrame:
    """For each stack the share of its allocations that were released, and in which pass."""
    backward = stacks.filter("backward")["stack"].implode()
    by_itself = pl.col("freed_stack") == pl.col(
        "stack"
    )  # with context="alloc" a release has the stack of its allocation
    freed = pl.col("freed_place").is_not_null()
    in_backward = freed & (pl.col("freed_stack").is_null() | pl.col("freed_stack").is_in(backward))
    return (
        allocations.drop_nulls("stack")
        .group_by("stack")
        .agg(
            released=freed.mean(),
            life=(pl.col("freed_place") - pl.col("place")).median(),
            by_backward=in_backward.mean(),
            by_others=(freed & ~in_backward & ~by_itself.fill_null(False)).mean(),
        )
    )


def _seems_workspace(rows: pl.DataFrame, allocations: pl.DataFrame) -> pl.Series:
    """cuBLAS takes a workspace of a fixed size with a thread's first product and never gives it back.

    So it is the first one of its stack and size that stays, where the others, if there are any, are released.
    """
    counts = allocations.group_by("stack").agg(of_stack=pl.len())
    alike = (
        allocations.filter(pl.col("bytes").is_in(_WORKSPACES))
        .group_by("stack", "bytes")
        .agg(
            pl.len().alias("count"),
            released=pl.col("freed_place").count(),
            place=pl.col("place").filter(pl.col("freed_place").is_null()).min(),
        )
        .join(counts, on="stack", nulls_equal=True)
    )
    is_one = (pl.col("count") == 1) & (pl.col("of_stack") > 1) | (
        pl.col("released") > MOSTLY * pl.col("count")
    )
    places = alike.filter(is_one)["place"].drop_nulls()
    return rows["place"].is_in(places.implode()).fill_null(False)


_KIND = (
    pl.when(pl.col("optimizer") & pl.col("makes_state")).then(pl.lit("optimizer state"))
    .when(pl.col("optimizer") & ((pl.col("updates") & ~pl.col("clones_state")) | (pl.col("released") > MOSTLY))).then(_TEMPORARY)
    .when(pl.col("optimizer")).then(pl.lit("optimizer state"))
    .when(pl.col("makes") & ~pl.col("calls")).then(pl.lit("parameter"))
    .when(pl.col("workspace")).then(pl.lit("workspace"))
    .when(pl.col("recomputes")).then(pl.lit("activation"))
    .when(pl.col("of_backward")).then(_GRADIENT)
    .when(pl.col("loads")).then(pl.lit("input"))
    .when((pl.col("by_others") > MOSTLY) & (pl.col("life") <= SHORT_LIFE)).then(_TEMPORARY)
    .when(pl.col("calls") | pl.col("functional") | (pl.col("by_backward") > MOSTLY)).then(pl.lit("activation"))
    .otherwise(pl.lit("unknown"))
)  # fmt: skip


def _tell_gradients(rows: pl.DataFrame) -> pl.Series:
    """Of what the backward pass allocated, gradients of weights have the size of a weight; the rest is passed on and released."""
    sizes = rows.filter(pl.col("kind") == "parameter")["bytes"].unique()
    if sizes.is_empty():
        return rows["kind"]
    is_other = (pl.col("kind") == "gradient") & ~pl.col("bytes").is_in(sizes.implode())
    return rows.select(pl.when(is_other).then(_TEMPORARY).otherwise("kind").alias("kind")).to_series()
