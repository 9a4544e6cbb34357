"""One pass of a model for each row of a tensor, or for each small part of it, within one step: for each sample of a batch, or in micro-batches.

A function cuts one tensor along its first side and calls the same module with each piece. The pieces are there before the first pass,
so none needs the one before, unless an optimizer changes the weights in between or a recurrent network takes its state along.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.host.calls.passes import first_operand, module_calls, nearest
from stepscope.analysis.shapes import Shape, shapes_in
from stepscope.registers.policy.findings import MAJORITY
from stepscope.trace.lookup import are_named, events_named
from stepscope.trace.trace import Trace

# Each piece is cut for itself, or all at once; the former have to come as often as the passes.
_ONE_BY_ONE = ("aten::select", "aten::slice", "aten::narrow", "aten::index", "aten::index_select")
_AT_ONCE = ("aten::unbind", "aten::split", "aten::chunk", "aten::split_with_sizes", "aten::tensor_split")
_LOOKS_UP = "aten::embedding"
_RECURRENT = r"^aten::(\w*lstm\w*|\w*gru\w*|\w*rnn\w*)$"
_UPDATES = r"^Optimizer\.step"
_GROUP = ["frame", "name", "times"]


def row_passes(trace: Trace, frames: pl.Series, launching: pl.Series) -> pl.DataFrame:
    """call, launches: the calls of modules that one of these frames makes for one piece after the other."""
    events = trace.events
    calls = module_calls(events, frames)
    inside = nearest(events, calls["call"])
    if len(calls):
        groups = calls.join(first_operand(trace, inside), on="call", how="left", maintain_order="left")
        alike = groups.group_by(_GROUP).agg(
            text=pl.col("shapes").drop_nulls().mode().sort().first(), op=pl.col("op").drop_nulls().first()
        )
        looping = calls["frame"].unique()
        around = nearest(events, looping)
        sequential = _sequential(events, calls, inside, around)
        alike = alike.join(sequential, on=_GROUP, how="anti").drop_nulls()
        cuts = _cuts(trace, around, inside)
        chosen = [each for each in alike.iter_rows(named=True) if _is_cut(each, cuts.get(each["frame"], []))]
        found = pl.DataFrame(chosen, schema=alike.schema).select(_GROUP)
        calls = calls.join(found, on=_GROUP, how="semi", maintain_order="left")
    held = pl.DataFrame({"call": inside.gather(launching)}).drop_nulls()
    counts = held.group_by("call").agg(launches=pl.len())
    return calls.join(counts, on="call", maintain_order="left").select("call", "launches")


def _sequential(
    events: pl.DataFrame, calls: pl.DataFrame, inside: pl.Series, around: pl.Series
) -> pl.DataFrame:
    """Passes with a recurrent network inside, or in a function that updates the weights as often as it calls the module."""
    recurrent = inside.filter(events_named(events, lambda names: names.str.contains(_RECURRENT)))
    updates = around.filter(are_named(events["name"], lambda names: names.str.contains(_UPDATES)))
    often = pl.DataFrame({"frame": updates}).drop_nulls().group_by("frame").agg(updates=pl.len())
    known = calls.join(often, on="frame", how="left", maintain_order="left")
    is_updated = (pl.col("updates") >= MAJORITY * pl.col("times")).fill_null(False)
    has_state = pl.col("call").is_in(recurrent.drop_nulls().implode())
    return known.filter(is_updated | has_state).select(_GROUP).unique()


def _cuts(trace: Trace, around: pl.Series, inside: pl.Series) -> dict[int, list[tuple[str, Shape, int]]]:
    """By frame: what it cuts outside of the passes (op, shape, how often)."""
    events, ops = trace.events, trace.ops
    wanted = are_named(events["name"], lambda names: names.is_in([*_ONE_BY_ONE, *_AT_ONCE]))
    mine = wanted & inside.is_null() & around.is_not_null()
    rows = ops.filter(mine.gather(ops["event"])).select("event", text=pl.col("shapes").cast(pl.String))
    rows = rows.with_columns(
        frame=around.gather(rows["event"]), op=events["name"].gather(rows["event"]).cast(pl.String)
    )
    found: dict[int, list[tuple[str, Shape, int]]] = {}
    for frame, op, text, count in rows.drop_nulls().group_by("frame", "op", "text").len().iter_rows():
        for shape in shapes_in(text)[:1]:
            found.setdefault(frame, []).append((op, shape, count))
    return found


def _is_cut(passes: dict[str, object], cuts: list[tuple[str, Shape, int]]) -> bool:
    """Whether pieces of this size may be those of something that was cut: it has as many rows as all passes take together."""
    shapes = shapes_in(str(passes["text"]))
    given = shapes[1:2] if passes["op"] == _LOOKS_UP else shapes[:1]
    if not given or len(given[0]) < 2:
        return False
    rows, rest, times = given[0][0], given[0][1:], int(str(passes["times"]))
    return any(
        shape[1:] == rest and shape[0] > rows * (times - 1) and (op in _AT_ONCE or count >= MAJORITY * times)
        for op, shape, count in cuts
        if shape
    )
