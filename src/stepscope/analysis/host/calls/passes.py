"""One pass of a model for each of many inputs within one step: for each environment, picture or text, in batches of one.

A function calls the same module again and again, each time with an input that it has just copied to the device. One pass does not
need the one before where nothing comes back in between, or where what comes back cannot be the next input: text that is generated,
a sampler that computes on the host and a single environment need it. Reading the next picture and preparing it for the model do not.
"""

from __future__ import annotations

from typing import Literal

import polars as pl

from stepscope.analysis.host.names import PREPARES_INPUT
from stepscope.registers.policy.findings import LOOP_ITERATIONS
from stepscope.trace.lookup import are_named
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

MODULE = "nn.Module: "
_BACKWARD = "run_backward"
_OF_INDICES = "aten::embedding"
_OF_ONE = r"^\[\[1, *\d"  # the first operand is a batch of one
_TURN = ["frame", "times"]


def repeated_passes(trace: Trace, frames: pl.Series, launching: pl.Series) -> pl.DataFrame:
    """call, launches: the calls of modules that one of these frames makes for one input after the other."""
    events = trace.events
    calls = module_calls(events, frames)
    inside = nearest(events, calls["call"])
    if len(calls):
        turns = _independent(trace, frames, calls, inside)
        calls = calls.join(turns, on=_TURN, maintain_order="left", how="semi")
    held = pl.DataFrame({"call": inside.gather(launching)}).drop_nulls()
    counts = held.group_by("call").agg(launches=pl.len())
    return calls.join(counts, on="call", maintain_order="left").select("call", "launches")


def module_calls(events: pl.DataFrame, frames: pl.Series) -> pl.DataFrame:
    """call, frame, name, start_ns, times: modules that one call of a function calls many times, each for itself."""
    modules = are_named(events["name"], lambda names: names.str.starts_with(MODULE))
    below = frames.gather(events["parent"]).fill_null(False)
    mine = events.filter(modules & below & events["step"].is_not_null())
    calls = mine.select("start_ns", "name", call="id", frame="parent")
    calls = calls.with_columns(times=pl.len().over("frame", "name"))
    return calls.filter(pl.col("times") >= LOOP_ITERATIONS).sort("start_ns")


def nearest(events: pl.DataFrame, chosen: pl.Series) -> pl.Series:
    """For each event the nearest of the chosen ones that it runs in, itself included, or null."""
    wanted = pl.repeat(False, len(events), dtype=pl.Boolean, eager=True).scatter(chosen, True)
    found = pl.when(wanted).then(events["id"]).otherwise(ancestors(events, wanted))
    return pl.select(found).to_series()


def _independent(trace: Trace, frames: pl.Series, calls: pl.DataFrame, inside: pl.Series) -> pl.DataFrame:
    """frame, times: where each turn sends a batch of one to the device, as much each time, and needs none before it."""
    events, looping = trace.events, calls["frame"].unique()
    around = nearest(events, looping)
    beside = inside.is_null() & around.is_not_null() & ~events["id"].is_in(looping.implode())
    trains = are_named(events["name"], lambda names: names.str.contains(_BACKWARD, literal=True))
    first = first_op(trace, inside)
    sent, back = (_copied(trace, around, beside, direction) for direction in ("HtoD", "DtoH"))
    turns = calls.join(first, on="call", how="left", maintain_order="left")
    sent = _with_pass(sent, calls, "forward")
    back = _with_pass(back, calls, "backward")
    for name, copies in (("sent", sent), ("back", back)):
        summed = copies.group_by("call").agg(pl.col("bytes").sum().alias(name))
        turns = turns.join(summed, on="call", how="left", maintain_order="left")
    turns = turns.with_columns(pl.col("back").fill_null(0))
    others = _computes_between(events, beside & frames)
    helped, trained = (around.filter(which).unique().implode() for which in (others, trains))
    alike = (pl.col("sent").count() == pl.len()) & (pl.col("sent").n_unique() == 1) & pl.col("of_one").all()
    needless = (pl.col("back") != pl.col("sent")).all() & ~pl.col("of_indices").any()
    found = turns.group_by(*_TURN, "name").agg(alike=alike, needless=needless, reads=pl.col("back").sum() > 0)
    apart = ~pl.col("reads") | (pl.col("needless") & ~pl.col("frame").is_in(helped))
    return found.filter("alike", apart, ~pl.col("frame").is_in(trained)).select(_TURN).unique()


def _computes_between(events: pl.DataFrame, beside: pl.Series) -> pl.Series:
    """Which of these frames may make the next input of the last result, as a simulator does: those outside of what reads and prepares inputs."""
    prepares = are_named(events["name"], lambda names: names.str.contains(PREPARES_INPUT))
    return beside & ancestors(events, beside).is_null() & ~prepares


def first_op(trace: Trace, inside: pl.Series) -> pl.DataFrame:
    """call, of_one, of_indices: what the first op of each pass with shapes is given."""
    return first_operand(trace, inside).select(
        "call", of_one=pl.col("shapes").str.contains(_OF_ONE), of_indices=pl.col("op") == _OF_INDICES
    )


def first_operand(trace: Trace, inside: pl.Series) -> pl.DataFrame:
    """call, op, shapes of the first op of each pass with shapes."""
    ops = trace.ops.select("event", shapes=pl.col("shapes").cast(pl.String))
    ops = ops.with_columns(call=inside.gather(ops["event"])).drop_nulls()
    ops = ops.with_columns(
        op=trace.events["name"].gather(ops["event"]).cast(pl.String),
        start=trace.events["start_ns"].gather(ops["event"]),
    )
    first = ops.sort("start").unique("call", keep="first", maintain_order=True)
    return first.select("call", "op", "shapes")


def _copied(trace: Trace, around: pl.Series, beside: pl.Series, direction: str) -> pl.DataFrame:
    """start_ns, frame, bytes of the copies that a frame launches outside of the passes."""
    copies = trace.copies.filter(pl.col("direction").cast(pl.String) == direction).select("event", "bytes")
    links = trace.links.filter(pl.col("why") == "launch").select("from", event="to")
    found = copies.join(links, on="event").with_columns(pl.col("bytes").fill_null(0))
    found = found.filter(beside.gather(found["from"]))
    return found.select(
        "bytes",
        frame=around.gather(found["from"]),
        start_ns=trace.events["start_ns"].gather(found["from"]),
    ).sort("start_ns")


def _with_pass(
    copies: pl.DataFrame, calls: pl.DataFrame, strategy: Literal["forward", "backward"]
) -> pl.DataFrame:
    """The copies with the pass that comes next in their frame, or that came before."""
    known = calls.select("start_ns", "frame", "call")
    return copies.join_asof(known, on="start_ns", by="frame", strategy=strategy, check_sortedness=False)
