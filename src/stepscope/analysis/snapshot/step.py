"""Where the step begins in which the history is looked at."""

from __future__ import annotations

import polars as pl


def find_step(allocations: pl.DataFrame, stacks: pl.DataFrame, end: int) -> int:
    """The place of the first call of a module behind the last backward pass or update of weights.

    In the first step, behind the weights; where no module is called, right behind the last backward pass.
    """
    flags = ("calls", "backward", "recomputes", "optimizer", "makes")
    rows = (
        allocations.filter(pl.col("place") <= end)
        .join(stacks.select("stack", *flags), on="stack", how="left", maintain_order="left")
        .with_columns(pl.col(flags).fill_null(False))
    )
    ends = pl.col("stack").is_null() | pl.col("backward") | pl.col("optimizer")
    forward = pl.col("calls") & ~ends & ~pl.col("recomputes")
    made = pl.col("makes") & ~pl.col("calls") & ~ends
    marks = rows.select(
        "place", mark=pl.when(forward).then(1).when(ends & ~pl.col("recomputes") | made).then(0)
    ).drop_nulls()
    begins = marks.filter(pl.col("mark") == 1, pl.col("mark").shift(1, fill_value=0) == 0)
    if len(begins):
        return int(begins["place"][-1])
    return int(marks["place"].max() or 0) + 1 if len(marks) else 0  # type: ignore[arg-type]
