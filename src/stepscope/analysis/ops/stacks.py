"""The Python stack that each call of an op was made from, in words.

An op of the backward pass has the stack of the forward op it is linked to, as it has that op's module. Where no Python was
recorded, the annotations around a call are its stack.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.ops.forward_backward import forward_ops
from stepscope.registers.policy.tables import DEEPEST_STACK, STACK_SHOWN
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

NO_STACK = "(no stack)"
_BETWEEN = " ← "
_ADDRESS = r" at 0x[0-9a-fA-F]+"
_STEP = r"^ProfilerStep#[0-9]+$"


def stacks_of(trace: Trace, calls: pl.Series) -> pl.Series:
    """For each of these events the frames around it, the innermost first."""
    events = trace.events
    around = ancestors(events, _is_frame(trace))
    frame = around.gather(calls)
    forward = forward_ops(trace)
    if forward is not None:
        inherited = around.gather(forward.gather(calls))
        frame = pl.select(pl.coalesce(frame, inherited)).to_series()
    frames = _with_outer(frame.drop_nulls().unique(), around)
    stack = _numbered(frames, events["name"], len(events))
    texts = pl.Series([NO_STACK, *_texts(stack.names, stack.above)], dtype=pl.String)
    return texts.gather((stack.of_event.gather(frame) + 1).fill_null(0)).rename("stack")


def _is_frame(trace: Trace) -> pl.Series:
    kind = trace.events["kind"]
    if (kind == "python").any():
        return kind == "python"
    name = trace.events["name"].cast(pl.String)
    marks: pl.Series = (kind == "annotation") & ~name.str.contains(_STEP).fill_null(False)
    return marks


def _with_outer(frames: pl.Series, around: pl.Series) -> pl.DataFrame:
    """id and the frame around it, of these frames and all that enclose them."""
    found = frames
    newest = frames
    for _ in range(DEEPEST_STACK):
        newest = around.gather(newest).drop_nulls().unique()
        newest = newest.filter(~newest.is_in(found.implode()))
        if newest.is_empty():
            break
        found = pl.concat([found, newest])
    return pl.DataFrame({"id": found, "outer": around.gather(found)})


class _Stacks:
    """Distinct stacks: the innermost name of each, the stack around it (-1 for none), and which one ends at each event."""

    def __init__(self, of_event: pl.Series) -> None:
        self.of_event = of_event
        self.names: list[str] = []
        self.above: list[int] = []


def _numbered(frames: pl.DataFrame, names: pl.Series, count: int) -> _Stacks:
    """Frames of the same name inside the same stack are one stack."""
    found = _Stacks(pl.repeat(None, count, dtype=pl.Int64, eager=True))
    named = frames.with_columns(name=_without_address(names.gather(frames["id"])))
    level = named.filter(pl.col("outer").is_null()).with_columns(above=pl.lit(-1, dtype=pl.Int64))
    while len(level):
        made = level.select("above", "name").unique(maintain_order=True).with_row_index("place")
        made = made.with_columns(stack=pl.col("place").cast(pl.Int64) + len(found.names))
        placed = level.join(made, on=["above", "name"], maintain_order="left")
        found.of_event = found.of_event.scatter(placed["id"], placed["stack"])
        found.names += made["name"].to_list()
        found.above += made["above"].to_list()
        inner = named.join(placed.select(outer="id", above="stack"), on="outer", maintain_order="left")
        level = inner.select("id", "outer", "name", "above")
    return found


def _without_address(names: pl.Series) -> pl.Series:
    """Methods of two objects are the same frame."""
    known = names.unique()
    texts = known.cast(pl.String).str.replace_all(_ADDRESS, "")
    found: pl.Series = names.replace_strict(known, texts, return_dtype=pl.String)
    return found


def _texts(names: list[str], above: list[int]) -> list[str]:
    """Each stack in words; outer ones come before inner ones."""
    written: list[tuple[str, ...]] = []
    for name, outer in zip(names, above, strict=True):
        rest = written[outer] if outer >= 0 else ()
        written.append((name or "", *rest[: STACK_SHOWN - 1]))
    return [_BETWEEN.join(frames) for frames in written]
