"""Allocations from a time in which no stacks were recorded: stepscope leaves them out while memory is plentiful, since they cost time.

What has the size of tensors that one line alone makes, by all stacks that there are, is of that line. The rest gets a stack
without frames, so that it is not taken for the backward pass, which has none either.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import MutableMapping
from typing import cast

import polars as pl

from stepscope.analysis.snapshot.growth import SITE
from stepscope.analysis.snapshot.stacks import describe_stacks
from stepscope.trace.snapshot import WITHOUT_STACKS
from stepscope.trace.trace import Trace


def fill_stacks(trace: Trace) -> Trace:
    """The trace with a stack for each allocation of these times; as it is where there were none."""
    spans = trace.events.filter(pl.col("name").cast(pl.String) == WITHOUT_STACKS)
    if spans.is_empty():
        return trace
    memory = trace.memory.with_row_index("row")
    unseen = memory["time_ns"].is_null()
    for start, length in spans.select("start_ns", "dur_ns").iter_rows():
        unseen |= memory["time_ns"].is_between(start, start + length)
    memory = memory.with_columns(unseen=unseen & memory["stack"].is_null())
    unknown = int(trace.memory["stack"].max() or 0) + 1  # type: ignore[arg-type]
    lines = _find_lines(memory, describe_stacks(trace))
    memory = memory.join(
        lines, left_on=pl.col("bytes").abs(), right_on="bytes", how="left", maintain_order="left"
    )
    known = pl.coalesce("line", pl.lit(unknown, dtype=memory.schema["stack"]))
    memory = memory.with_columns(stack=pl.when("unseen").then(known).otherwise("stack"))
    filled = {"memory": memory.select(trace.memory.columns), "blocks": _fill_blocks(trace, memory)}
    tables = cast("MutableMapping[str, pl.DataFrame]", trace.tables)
    return Trace.over(ChainMap(filled, tables), trace.cold)


def _find_lines(memory: pl.DataFrame, stacks: pl.DataFrame) -> pl.DataFrame:
    """`line`, a stack, for each size in `bytes` that one line makes and nothing without a stack does."""
    seen = memory.filter(pl.col("bytes") > 0, ~pl.col("unseen")).join(
        stacks.select("stack", site=pl.struct(SITE).rank("dense")), on="stack", how="left"
    )
    by_size = seen.group_by("bytes").agg(
        line=pl.col("stack").last(),
        is_one=(pl.col("site").n_unique() == 1) & pl.col("site").is_not_null().all(),
    )
    return by_size.filter("is_one").select("bytes", "line")


def _fill_blocks(trace: Trace, memory: pl.DataFrame) -> pl.DataFrame:
    """What is in use has the stack of the last allocation at its address."""
    last = memory.filter(pl.col("bytes") > 0).unique(["device", "address"], keep="last")
    unseen = last.filter("unseen").select("device", "address", filled="stack")
    joined = trace.blocks.join(unseen, on=["device", "address"], how="left", maintain_order="left")
    return joined.with_columns(stack=pl.coalesce("stack", "filled")).select(trace.blocks.columns)
