"""Modules of one class that a function calls one after the other and whose results it joins: heads written one by one, branches, members of an ensemble.

None needs the one before: all are given the same, nothing is computed between them, and what they return, as the op behind the last one
says which joins it, has another shape than what they are given.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.host.calls.passes import first_operand, nearest
from stepscope.analysis.host.views import ONLY_VIEWS
from stepscope.analysis.shapes import arrays_in, shapes_in
from stepscope.registers.policy.findings import JOINED_MODULES
from stepscope.trace.lookup import are_named
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

_JOINS = ("aten::stack", "aten::cat", "aten::concat", "aten::concatenate")
_MODULE = "nn.Module: "
_NUMBER = r"_\d+$"
_GROUP = ["frame", "class"]


def joined_modules(trace: Trace, frames: pl.Series, launching: pl.Series) -> pl.DataFrame:
    """call, launches, first (the name of the first of them): the calls of such modules by these frames."""
    calls = _candidates(trace, frames)
    inside = nearest(trace.events, calls["call"])
    if len(calls):
        calls = calls.join(_groups(trace, calls, inside), on=_GROUP, how="semi", maintain_order="left")
    held = pl.DataFrame({"call": inside.gather(launching)}).drop_nulls()
    counts = held.group_by("call").agg(launches=pl.len())
    found = calls.with_columns(first=pl.col("name").first().over(_GROUP))
    return found.join(counts, on="call", maintain_order="left").select("call", "launches", "first")


def _candidates(trace: Trace, frames: pl.Series) -> pl.DataFrame:
    """call, frame, name, class, track, start_ns, end_ns: some modules of one class, each called once by a frame."""
    events = trace.events
    modules = are_named(events["name"], lambda names: names.str.starts_with(_MODULE))
    below = frames.gather(events["parent"]).fill_null(False)
    mine = events.filter(modules & below & events["step"].is_not_null())
    calls = mine.select(
        "name", "track", "start_ns", call="id", frame="parent", end_ns=pl.col("start_ns") + pl.col("dur_ns")
    )
    calls = calls.with_columns(pl.col("name").cast(pl.String).str.replace(_NUMBER, "").alias("class"))
    once = pl.col("name").n_unique().over(_GROUP) == pl.len().over(_GROUP)
    return calls.filter(pl.len().over(_GROUP) >= JOINED_MODULES, once).sort("start_ns")


def _groups(trace: Trace, calls: pl.DataFrame, inside: pl.Series) -> pl.DataFrame:
    """frame, class of those that are given the same and joined right behind the last one."""
    first = first_operand(trace, inside)
    known = calls.join(first, on="call", how="left", maintain_order="left")
    groups = known.group_by(_GROUP, maintain_order=True).agg(
        pl.col("track").first(),
        pl.col("end_ns").max(),
        begin_ns=pl.col("start_ns").min(),
        text=pl.col("shapes").first(),
        alike=(pl.struct("op", "shapes").n_unique() == 1) & (pl.col("shapes").null_count() == 0),
        count=pl.len(),
    )
    shapes = trace.ops.select(joint="event", joined=pl.col("shapes").cast(pl.String))
    groups = with_joints(trace.events, groups.filter("alike")).join(shapes, on="joint", maintain_order="left")
    groups = _without_other_work(trace, groups, inside)
    fits = [_are_joined(*row) for row in groups.select("text", "joined", "count").iter_rows()]
    return groups.filter(pl.Series(fits, dtype=pl.Boolean)).select(_GROUP)


def with_joints(events: pl.DataFrame, ends: pl.DataFrame) -> pl.DataFrame:
    """Those of the ends (track, end_ns, …) right behind which an op joins arrays, with that op (joint)."""
    ops = events.filter(events["kind"] == "op").select(
        "track", joint="id", op=pl.col("name").cast(pl.String), joint_ns="start_ns"
    )
    behind = ends.sort("end_ns").join_asof(
        ops.sort("joint_ns"),
        left_on="end_ns",
        right_on="joint_ns",
        by="track",
        strategy="forward",
        check_sortedness=False,
    )
    return behind.filter(pl.col("op").is_in(_JOINS)).drop("op", "joint_ns")


def _without_other_work(trace: Trace, groups: pl.DataFrame, inside: pl.Series) -> pl.DataFrame:
    """The groups in which nothing outside of the modules computes anything between the first and the last of them."""
    events = trace.events
    is_op = events["kind"] == "op"
    views = are_named(events["name"], lambda names: names.is_in(list(ONLY_VIEWS)))
    own = is_op & ancestors(events, is_op).is_null() & events["step"].is_not_null()
    others = events.filter(own & inside.is_null() & ~views).select("track", "start_ns").sort("start_ns")
    others = others.with_columns(done=pl.int_range(1, pl.len() + 1).over("track"))
    for end in ("begin_ns", "end_ns"):
        counted = others.rename({"start_ns": end, "done": f"done_{end}"})
        groups = groups.sort(end).join_asof(counted, on=end, by="track", check_sortedness=False)
    return groups.filter(pl.col("done_begin_ns").fill_null(0) == pl.col("done_end_ns").fill_null(0))


def _are_joined(given: str, joined: str | None, count: int) -> bool:
    """Whether the results are as many as the modules, alike, and none can be the input of the next module."""
    pieces, first = arrays_in(joined), shapes_in(given)[:1]
    return len(pieces) == count and len({*pieces}) == 1 and bool(pieces[0]) and [pieces[0]] != first
