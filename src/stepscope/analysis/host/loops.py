"""Loops in Python that launch the same work again and again within one step: over experts, samples, parameters, time steps.

A loop shows as one call of a function in which the same ops, library functions or modules are called many times. The
layers of a model do not count: each is a module of its own. Modules of one class count where none needs another. What a module
of the user's calls counts only where its calls are passes that do not need one another. Loops that carry a state do not count.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.host.bodies import Bodies, find_bodies
from stepscope.analysis.host.calls.host_passes import host_passes
from stepscope.analysis.host.calls.joined_modules import joined_modules, with_joints
from stepscope.analysis.host.calls.passes import repeated_passes
from stepscope.analysis.host.calls.row_passes import row_passes
from stepscope.analysis.host.calls.sample_passes import sample_passes
from stepscope.analysis.host.calls.siblings import sibling_modules
from stepscope.analysis.host.carried_state import frames_with_state
from stepscope.analysis.host.fed_back import frames_fed_back
from stepscope.analysis.host.views import ONLY_VIEWS
from stepscope.lazy import dataclass
from stepscope.registers.policy.findings import (
    JOINED_MODULES,
    LOOP_BODY_SHARE,
    LOOP_CALLS_OF_FUNCTION,
    LOOP_ITERATIONS,
    STEPS_OF_ONE_CALL,
)
from stepscope.trace.frames import conform
from stepscope.trace.lookup import are_named
from stepscope.trace.schema import Columns
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

LOOPS: Columns = {
    "frame": pl.UInt32,
    "iterations": pl.Float64,
    "launches": pl.UInt32,
    "whole": pl.Boolean,
    "passes": pl.Boolean,
    "siblings": pl.Boolean,
}


@dataclass(frozen=True)
class Loops:
    """`found`: frame (the call that loops), iterations, launches, whole, passes (of a model, one for each input), siblings (each turn has a module of its own). `loop_of`: for each event of the host the loop it runs in, or null."""

    found: pl.DataFrame
    loop_of: pl.Series


def find_loops(trace: Trace, on_host: bool = False) -> Loops:
    """The loops of all steps; none where the recording has no Python frames. `on_host`: ops are the work, and launch none."""
    bodies = find_bodies(trace)
    trace, events = bodies.trace, bodies.trace.events
    launching = _computing_ops(events) if on_host else trace.links.filter(pl.col("why") == "launch")["from"]
    launching = launching.filter(events["step"].gather(launching).is_not_null())
    repeated = _repeated(events, _called(bodies, launching, on_host))
    if repeated.is_empty():
        return Loops(pl.DataFrame(schema=LOOPS), _nowhere(events))
    found = _loops(repeated, _launches_below(events, repeated["frame"].unique().sort(), launching))
    loop_of = _loop_of(events, repeated, found, launching)
    return _without_state(bodies, repeated, Loops(found, _with_joints(trace, repeated, loop_of)))


def _without_state(bodies: Bodies, repeated: pl.DataFrame, loops: Loops) -> Loops:
    """The loops but those whose turns need the one before."""
    frames = frames_with_state(bodies.trace, bodies.functions, repeated, loops.loop_of)
    frames += frames_fed_back(bodies.trace, loops.found, loops.loop_of)
    if not frames:
        return loops
    left = pl.when(~loops.loop_of.is_in(frames)).then(loops.loop_of)
    return Loops(loops.found.filter(~pl.col("frame").is_in(frames)), pl.select(left).to_series())


def _nowhere(events: pl.DataFrame) -> pl.Series:
    return pl.repeat(None, len(events), dtype=pl.UInt32, eager=True)


def _computing_ops(events: pl.DataFrame) -> pl.Series:
    """The ops of PyTorch that compute and leave it to no other op."""
    computes = are_named(
        events["name"], lambda names: names.str.starts_with("aten::") & ~names.is_in(ONLY_VIEWS)
    )
    computing = events["id"].filter(computes & (events["kind"] == "op"))
    found: pl.Series = computing.filter(~computing.is_in(events["parent"].gather(computing).implode()))
    return found


def _called(bodies: Bodies, launching: pl.Series, on_host: bool) -> pl.DataFrame:
    """What the user's functions call that launches device work in a step: call, launches, frame, name, own (calls a function of the user's), passes, siblings."""
    trace, frames = bodies.trace, bodies.frames
    events = trace.events
    below = frames.gather(events["parent"]).fill_null(False)
    direct = pl.DataFrame({"call": _at_or_above(events, below, launching, on_host)}).drop_nulls()
    per_call = direct.group_by("call").agg(launches=pl.len())
    makers = (host_passes, row_passes) if on_host else (repeated_passes, row_passes, sample_passes)
    passes = pl.concat([make(trace, frames, launching) for make in makers]).unique("call")
    joined = joined_modules(trace, frames, launching)
    of_joined = joined.select("call", "launches")
    per_call = pl.concat([per_call, _functions(events, frames, per_call), passes, of_joined])
    per_call = per_call.unique("call", keep="last", maintain_order=True)
    calls = per_call["call"]
    called = per_call.with_columns(
        frame=events["parent"].gather(calls),
        name=events["name"].gather(calls),
        own=frames.gather(calls),
        passes=calls.is_in(passes["call"].implode()),
    )
    siblings = pl.concat([joined.select("call", "first"), sibling_modules(trace, called)]).unique("call")
    named = called.join(siblings, on="call", how="left", maintain_order="left")
    return named.with_columns(name=pl.coalesce("first", "name"), siblings=pl.col("first").is_not_null()).drop(
        "first"
    )


def _at_or_above(events: pl.DataFrame, below: pl.Series, launching: pl.Series, on_host: bool) -> pl.Series:
    """The calls that these belong to; on a host what computes may be the call itself."""
    above = ancestors(events, below)
    if on_host:
        above = pl.select(pl.when(below).then(events["id"]).otherwise(above)).to_series()
    found: pl.Series = above.gather(launching)
    return found


def _functions(events: pl.DataFrame, frames: pl.Series, per_call: pl.DataFrame) -> pl.DataFrame:
    """The user's functions that hold those calls, if another of the user's functions called them."""
    held = per_call.with_columns(call=events["parent"].gather(per_call["call"]))
    below = frames.gather(events["parent"].gather(held["call"])).fill_null(False)
    return held.filter(below).group_by("call").agg(pl.col("launches").sum())


def _repeated(events: pl.DataFrame, called: pl.DataFrame) -> pl.DataFrame:
    """The calls of a name that one frame makes many times: call, frame, name, launches, times.

    A frame that goes on through steps makes the same calls in each of them, which is not a loop within a step.
    """
    of_functions = (
        pl.when(pl.col("own") & ~pl.col("passes")).then(LOOP_CALLS_OF_FUNCTION).otherwise(LOOP_ITERATIONS)
    )
    least = pl.when("siblings").then(JOINED_MODULES).otherwise(of_functions)
    steps = called.select("frame", step=events["step"].gather(called["call"])).group_by("frame")
    through = steps.agg(pl.col("step").n_unique()).filter(pl.col("step") > STEPS_OF_ONE_CALL)["frame"]
    called = called.filter(~pl.col("frame").is_in(through.implode()))
    return called.with_columns(times=pl.len().over("frame", "name")).filter(pl.col("times") >= least)


def _launches_below(events: pl.DataFrame, calls: pl.Series, launching: pl.Series) -> pl.DataFrame:
    """call, all: how many launches each of these calls holds, however deep."""
    outer = ancestors(events, pl.repeat(False, len(events), eager=True).scatter(calls, True))
    found, inside = [calls.clear()], outer.gather(launching).drop_nulls()
    while len(inside):
        found.append(inside)
        inside = outer.gather(inside).drop_nulls()
    return pl.DataFrame({"call": pl.concat(found)}).group_by("call").agg(all=pl.len())


def _loops(repeated: pl.DataFrame, below: pl.DataFrame) -> pl.DataFrame:
    """The frames that loop; `whole`: most of what they launch is the loop's, and with it the time between the calls."""
    summed = repeated.group_by("frame").agg(
        pl.col("launches").sum(),
        pl.col("passes", "siblings").any(),
        iterations=pl.col("times").min().cast(pl.Float64),
    )
    mine = summed.join(below, left_on="frame", right_on="call").with_columns(
        whole=pl.col("launches") >= LOOP_BODY_SHARE * pl.col("all")
    )
    return conform(mine.sort("frame"), LOOPS)


def _loop_of(
    events: pl.DataFrame, repeated: pl.DataFrame, found: pl.DataFrame, launching: pl.Series
) -> pl.Series:
    """For each event the frame of the loop that it runs in: all in the repeated calls, and the rest of a frame that launches nothing else.

    A step also holds what comes before the loop and behind it, such as the next batch: that is none of it.
    """
    whole = found["frame"].filter(found["whole"])
    beside = events["id"].filter(events["parent"].is_in(whole.implode()).fill_null(False))
    others = _launches_below(events, beside, launching)["call"]
    others = pl.concat([others, beside.filter(_is_outside(events, beside, repeated))])
    loop, known = _nowhere(events), pl.repeat(False, len(events), eager=True)
    for calls, frames in ((whole, whole), (others, None), (repeated["call"], repeated["frame"])):
        if len(calls):
            loop, known = loop.scatter(calls, frames), known.scatter(calls, True)
    nearest = pl.when(known).then(events["id"]).otherwise(ancestors(events, known))
    return loop.gather(pl.select(nearest).to_series())


def _is_outside(events: pl.DataFrame, beside: pl.Series, repeated: pl.DataFrame) -> pl.Series:
    """Which of these events an annotation holds before the first of the calls that it repeats, or behind the last."""
    around = events["parent"].gather(beside)
    calls = repeated.select("frame", start=events["start_ns"].gather(repeated["call"]))
    spans = calls.group_by("frame").agg(first=pl.col("start").min(), last=pl.col("start").max())
    rows = pl.DataFrame({"frame": around, "start": events["start_ns"].gather(beside)})
    rows = rows.join(spans, on="frame", how="left", maintain_order="left")
    annotated = (events["kind"].gather(around) == "annotation").fill_null(False)
    inside: pl.Series = rows.select(pl.col("start").is_between("first", "last")).to_series()
    return annotated & ~inside


def _with_joints(trace: Trace, repeated: pl.DataFrame, loop_of: pl.Series) -> pl.Series:
    """The same with the op that joins the results of siblings right behind them: one module for all returns them joined."""
    events = trace.events
    last = repeated.filter("siblings").sort("call").unique("frame", keep="last", maintain_order=True)
    last = last.select(
        "frame", **{name: events[name].gather(last["call"]) for name in ("track", "start_ns", "dur_ns")}
    )
    if last.is_empty():
        return loop_of
    ends = last.select("frame", "track", end_ns=pl.col("start_ns") + pl.col("dur_ns"))
    behind = with_joints(events, ends)
    mine = pl.repeat(None, len(events), dtype=pl.UInt32, eager=True).scatter(behind["joint"], behind["frame"])
    around = ancestors(events, mine.is_not_null())
    return pl.select(pl.coalesce(loop_of, mine, mine.gather(around))).to_series()
