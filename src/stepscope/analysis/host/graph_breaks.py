"""Breaks in what torch.compile compiled: one function becomes several programs, with Python and eager ops between them.

A compiled region that runs inside another one continues it: Python ran up to the break, and the rest was compiled as a function of
its own, whose name says where it goes on.
"""

from __future__ import annotations

import re

import polars as pl

from stepscope.analysis.host.functions import place_of
from stepscope.analysis.host.place import Place
from stepscope.lazy import dataclass
from stepscope.trace.lookup import events_named
from stepscope.trace.scopes import ancestors, at_or_inside
from stepscope.trace.trace import Trace

_REGION = "Torch-Compiled Region"
_GOES_ON = re.compile(r"^torch_dynamo_resume_in_(?P<function>.+)_at_(?P<line>\d{1,9})$")


@dataclass(frozen=True)
class Breaks:
    """`inner`: regions that go on after a break, in steps. `outer`: those that hold them. `inside`: for every event whether it is inside a region with a break.

    `places`: where the code goes on, each once, in order of their time.
    """

    inner: pl.Series
    outer: pl.Series
    inside: pl.Series
    places: list[Place]


def graph_breaks(trace: Trace) -> Breaks | None:
    """The breaks inside the steps; None where there are none."""
    events = trace.events
    region = events_named(events, lambda names: names.str.starts_with(_REGION)) & (events["kind"] == "op")
    if not region.any():
        return None
    above = ancestors(events, region)
    inner = region & above.is_not_null() & events["step"].is_not_null()
    if not inner.any():
        return None
    outer = _outermost(above, above.filter(inner).unique())
    roots = pl.repeat(False, len(events), dtype=pl.Boolean, eager=True).scatter(outer, True)
    inside = at_or_inside(events, roots)
    return Breaks(events["id"].filter(inner), outer, inside, _places(events))


def _outermost(above: pl.Series, regions: pl.Series) -> pl.Series:
    """The regions around these that are in no other."""
    found = regions.filter(above.gather(regions).is_null())
    while len(regions):
        regions = above.gather(regions).drop_nulls().unique()
        found = pl.concat([found, regions.filter(above.gather(regions).is_null())])
    outermost: pl.Series = found.unique()
    return outermost


def _places(events: pl.DataFrame) -> list[Place]:
    """Where functions go on after a break: the name has the line."""
    frames = events.filter(
        (pl.col("kind") == "python")
        & events_named(events, lambda names: names.str.contains("torch_dynamo_resume_in_", literal=True))
    )
    names = frames.sort("start_ns")["name"].cast(pl.String).unique(maintain_order=True)
    found = [(place, _GOES_ON.match(place.function)) for name in names if (place := place_of(name))]
    return [Place(place.file, int(at["line"]), at["function"]) for place, at in found if at]
