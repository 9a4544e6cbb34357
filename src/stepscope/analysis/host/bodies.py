"""Where a job's own code runs: calls of its functions, and the steps and annotations that are opened inside a function.

Most loops over batches are written in `main` or in no function at all, and so is what a step does: the function began before the step, and
goes on through all of them. The step's annotation stands for a function there, and so does one of the user's own, such as
`record_function("forward")`. One that a step opens again and again is a part of each turn of a loop, and changes nothing.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.host.names import FRAMEWORK_ANNOTATION, OWN_FRAME, PLACE, STANDARD_FRAME
from stepscope.lazy import dataclass
from stepscope.trace.lookup import are_named, names_of
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

_OF_FRAMEWORK = r"^nn\.Module: |(^|site-packages/|dist-packages/)(torch|torch_xla|functorch|triton|jax|jaxlib|tensorflow|keras)[/\\]"
_GENERATED = r"[/\\]c[a-z2-7]{51}\.py\("  # by Inductor, named by the hash of its text: a compiler wrote it, and nobody can batch it
_OTHERS = f"{_OF_FRAMEWORK}|{_GENERATED}|{OWN_FRAME}|{STANDARD_FRAME}"
_ASKED = ("ops", "links", "copies")


@dataclass(frozen=True)
class Bodies:
    """`trace`: the same, without the annotations of turns in the nesting of its events. `frames`: which events hold code of the user's;
    `functions`: those of them that are functions, or steps, whose variables all annotations inside see."""

    trace: Trace
    frames: pl.Series
    functions: pl.Series


def find_bodies(trace: Trace) -> Bodies:
    """The bodies of a trace; its events have their steps."""
    events = trace.events
    functions = _functions(events)
    bodies = _annotated(events, functions)
    again = bodies.filter("again")["id"]
    if len(again):
        events = _without(events, again)
        trace = Trace.over({"events": events, **{name: trace.tables[name] for name in _ASKED}}, {})
    steps, others = (bodies.filter(~pl.col("again"), each)["id"] for each in ("is_step", ~pl.col("is_step")))
    functions, frames = _with(functions, steps), _with(functions, pl.concat([steps, others]))
    return Bodies(trace, frames, functions)


def _with(wanted: pl.Series, more: pl.Series) -> pl.Series:
    return wanted.clone().scatter(more, True) if len(more) else wanted


def _functions(events: pl.DataFrame) -> pl.Series:
    """Which events are calls of functions outside of the framework and the standard library."""
    names = names_of(events)
    text = names.cast(pl.String)
    own = text.str.contains(PLACE) & ~text.str.contains(_OTHERS)
    return (events["kind"] == "python") & events["name"].is_in(names.filter(own).implode()).fill_null(False)


def _annotated(events: pl.DataFrame, functions: pl.Series) -> pl.DataFrame:
    """id, is_step, again: annotations that the user's code opens, and whether a step opens several of one name in one place.

    Where the thread has no frames of Python, all layers of a model are right inside the step, and none stands for a function.
    """
    annotations = (events["kind"] == "annotation") & events["step"].is_not_null()
    python = events["kind"] == "python"
    found = events.filter(annotations).select(
        "id", "name", "parent", "step", "track", is_step=(pl.col("role") == "step").fill_null(False)
    )
    if found.is_empty() or not functions.any():
        return found.clear().select("id", "is_step", again=pl.lit(False))
    of_framework = are_named(found["name"], lambda names: names.str.contains(FRAMEWORK_ANNOTATION))
    above = ancestors(events, python).gather(found["id"])
    mine = functions.gather(above) | (
        above.is_null() & found["track"].is_in(events["track"].filter(python).unique().implode())
    )
    found = found.filter(mine & (~of_framework | found["is_step"]))
    again = (pl.len().over("parent", "name", "step") > 1) & ~pl.col("is_step")
    return found.select("id", "is_step", again=again)


def _without(events: pl.DataFrame, gone: pl.Series) -> pl.DataFrame:
    """The events with what is directly inside of these moved to what is around them."""
    left = pl.repeat(True, len(events), dtype=pl.Boolean, eager=True).scatter(gone, False)
    around = ancestors(events, left)
    inside = ~left.gather(events["parent"]).fill_null(True)
    parent = pl.when(inside).then(around).otherwise(events["parent"])
    return events.with_columns(parent=parent)
