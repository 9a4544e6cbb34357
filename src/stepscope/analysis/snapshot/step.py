"""Where the step begins in which the history is looked at."""

from __future__ import annotations

import polars as pl

_BEFORE, _FORWARD = pl.lit(False), pl.lit(True)


def find_step(allocations: pl.DataFrame, stacks: pl.DataFrame, end: int) -> int:
    """The place of the first call of a module behind the last backward pass or update of weights.

    In the first step, behind the weights; where no module is called, right behind the last backward pass.
    """
    ends = pl.col("backward") | pl.col("optimizer")
    forward = pl.col("calls") & ~ends & ~pl.col("recomputes")
    made = pl.col("makes") & ~pl.col("calls") & ~ends
    mark = pl.when(forward).then(_FORWARD).when(ends & ~pl.col("recomputes") | made).then(_BEFORE)
    marks = (
        allocations.filter(pl.col("place") <= end)
        .select("place", "stack")
        .join(stacks.select("stack", mark=mark), on="stack", how="left", maintain_order="left")
        # The backward pass has no stack.
        .select("place", mark=pl.when(pl.col("stack").is_null()).then(_BEFORE).otherwise("mark"))
        .drop_nulls()
    )
    is_forward = pl.col("mark")
    begins = marks.filter(is_forward & ~is_forward.shift(1, fill_value=False))
    if len(begins):
        return int(begins["place"][-1])
    return int(marks["place"].max() or 0) + 1 if len(marks) else 0  # type: ignore[arg-type]
