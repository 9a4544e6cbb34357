"""The calls of ops of PyTorch around sorts, in their order."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.ops.sorts import SORTS, Call, KeptSort, kept_sorts, sorted_shape
from stepscope.registers.policy.useless_work import SORT_ROW_LEAST
from stepscope.trace.lookup import is_named
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

_NODE = r"Backward\d*$"
_TEXTS = ("shapes", "dtypes", "concrete_inputs")


def sorts_that_keep_few(trace: Trace) -> list[KeptSort]:
    """Of the forward pass in steps: sorts of which few entries are read."""
    calls = _calls(trace)
    if calls.is_empty():
        return []
    found: list[KeptSort] = []
    for _, mine in calls.group_by("track", "step", maintain_order=True):
        rows = mine.select("op", "name", *_TEXTS).iter_rows()
        found += kept_sorts([Call(*row) for row in rows])
    return found


def _calls(trace: Trace) -> pl.DataFrame:
    """track, step, op, name and texts of the calls that no other op of PyTorch makes, where there are sorts of long rows."""
    events = trace.events
    ops = trace.ops.select(pl.col("event").alias("op"), pl.col(*_TEXTS).cast(pl.String))
    ops = ops.drop_nulls("shapes")
    ops = ops.with_columns(pl.col("dtypes", "concrete_inputs").fill_null(""))
    ops = ops.with_columns(name=events["name"].gather(ops["op"]).cast(pl.String))
    sorts = ops.filter(pl.col("name").is_in(SORTS)).select("name", "shapes", "concrete_inputs").unique()
    if not any(_is_long(*row) for row in sorts.iter_rows()):
        return ops.clear()
    ops = ops.filter(pl.col("name").str.starts_with("aten::"))
    ops = ops.with_columns(
        events[name].gather(ops["op"]).alias(name) for name in ("track", "step", "start_ns", "dur_ns")
    )
    nodes = is_named(events, _NODE) & (events["kind"] == "op")
    ops = ops.filter(ancestors(events, nodes).gather(ops["op"]).is_null()).drop_nulls("step")
    ops = ops.sort("track", "start_ns", pl.col("dur_ns"), descending=[False, False, True])
    before = (pl.col("start_ns") + pl.col("dur_ns")).cum_max().shift(1).over("track")
    return ops.filter(before.is_null() | (pl.col("start_ns") >= before))


def _is_long(name: str, shapes: str, inputs: str) -> bool:
    found = sorted_shape(name, shapes, inputs)
    return found is not None and found[0][found[1]] >= SORT_ROW_LEAST
