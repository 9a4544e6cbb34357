"""How much longer the samples of a loop get when they become one batch: each is padded to the longest of the step."""

from __future__ import annotations

import math

import polars as pl

from stepscope.analysis.host.calls.passes import MODULE, nearest
from stepscope.analysis.host.calls.sample_passes import first_weighed
from stepscope.analysis.host.loops import Loops
from stepscope.registers.policy.findings import LOOP_ITERATIONS
from stepscope.trace.columns import repeated
from stepscope.trace.lookup import are_named
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace


def padding_of(trace: Trace, loops: Loops) -> pl.Series:
    """For each event of the host what the padded samples of its loop take, over what they take as they are: one where all are alike."""
    frames = loops.found["frame"].filter(loops.found["passes"])
    if frames.is_empty():
        return pl.repeat(1.0, len(trace.events), dtype=pl.Float64, eager=True)
    calls = _passes(trace, frames)
    given = first_weighed(trace, nearest(trace.events, calls["call"]))
    rows = calls.join(given, on="call").drop_nulls("given")
    shapes = rows.group_by("frame", "name", rank=pl.col("given").list.len()).agg("given")
    known = dict.fromkeys(frames, 1.0)
    for frame, of_frame in shapes.group_by("frame"):
        lists = [[tuple(sizes) for sizes in each] for each in of_frame["given"]]
        known[int(str(frame[0]))] = _padded_share([each for each in lists if len(each) >= LOOP_ITERATIONS])
    by_frame: pl.Series = loops.loop_of.replace_strict(known, default=1.0, return_dtype=pl.Float64)
    return by_frame.fill_null(1.0)


def _passes(trace: Trace, frames: pl.Series) -> pl.DataFrame:
    """call, frame, name: the modules that these functions call, none that another module calls."""
    events = trace.events
    modules = are_named(events["name"], lambda names: names.str.starts_with(MODULE))
    looping = repeated(False, len(events), pl.Boolean).scatter(frames, True)
    above = ancestors(events, modules | looping)
    mine = modules & looping.gather(above).fill_null(False)
    return events.filter(mine).select(call="id", frame=above.filter(mine), name="name")


def _padded_share(groups: list[list[tuple[int, ...]]]) -> float:
    """What one batch of each group computes, over what its samples do; along the first side they are rows, and padded by none."""
    padded = alike = 0
    for shapes in groups:
        longest = math.prod(max(sizes) for sizes in list(zip(*shapes, strict=True))[1:])
        padded += sum(shape[0] for shape in shapes) * longest
        alike += sum(math.prod(shape) for shape in shapes)
    return padded / alike if alike else 1.0
