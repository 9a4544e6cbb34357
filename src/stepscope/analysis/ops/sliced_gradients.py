"""Gradients of slices of one tensor: for each slice autograd fills a tensor as large as the whole, copies the piece into it, and adds it up.

`x[:, t]` in a loop is the usual case; the gradient of `x.unbind(1)` is one stack. Profiles do not name tensors. But what makes them, and
most of what uses them, is given an array of their size, so that between the slices of one tensor no op is; and a gradient that is not
added to another is the first of its tensor.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise

import msgspec
import polars as pl

from stepscope.analysis.shapes import arrays_in
from stepscope.lazy import dataclass
from stepscope.registers.policy.useless_work import SLICES_IN_STEP_LEAST, SLICES_OF_TENSOR_LEAST
from stepscope.trace.kept import kept_with_trace
from stepscope.trace.lookup import events_named
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

_SELECTS, _SLICES = "aten::select_backward", "aten::slice_backward"
_NODE = "autograd::engine::evaluate_function: "
_SUMS = ("aten::add", "aten::add_")
SCHEMA = {
    "node": pl.UInt32,
    "slices": pl.Float64,
    "slices_least": pl.Float64,
    "piece": pl.Float64,
    "overlaps": pl.Boolean,
    "again": pl.Boolean,
}


@dataclass(frozen=True)
class _Slice:
    """Which part of which tensor: the node of autograd, sizes and axis of the whole, and the places from `begin` to `end`."""

    node: int
    track: int
    start: int
    step: int
    sizes: tuple[int, ...]
    axis: int
    begin: int
    end: int
    stride: int
    summed: bool

    @property
    def place(self) -> tuple[int, int, int]:
        return self.begin, self.end, self.stride


@kept_with_trace
def sliced_gradients(trace: Trace) -> pl.DataFrame:
    """The nodes of autograd that make a gradient of a whole tensor for one of many slices.

    node; slices, slices_least: how many the tensor has, at most and at least; piece: the slice's share of the tensor; overlaps:
    whether it has places in common with other slices, as windows have; again: whether the same slice was taken before. The gradients of
    both are added up in any case.
    """
    slices = _slices(trace)
    groups: dict[tuple[object, ...], list[_Slice]] = defaultdict(list)
    for each in slices:
        groups[each.step, each.track, each.sizes, each.axis].append(each)
    groups = {key: mine for key, mine in groups.items() if len(mine) >= SLICES_IN_STEP_LEAST}
    if not groups:
        return pl.DataFrame(schema=SCHEMA)
    between = _ops_on_wholes(trace, list(groups.values()))
    rows = [row for mine in groups.values() for row in _rows_of(mine, between)]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _slices(trace: Trace) -> list[_Slice]:
    """All slices whose gradients a step computes, in order."""
    events = trace.events
    makes = (
        events_named(events, lambda known: known.is_in([_SELECTS, _SLICES])) & events["step"].is_not_null()
    )
    if makes.sum() < SLICES_IN_STEP_LEAST:
        return []
    is_node = events_named(events, lambda known: known.str.starts_with(_NODE))
    sums = events_named(events, lambda known: known.is_in(_SUMS))
    summed = events["parent"].filter(sums).drop_nulls().unique()
    inputs = trace.ops.select(id="event", inputs=pl.col("concrete_inputs").cast(pl.String)).drop_nulls()
    made = events.filter(makes).select(
        "id", "track", "step", is_select=pl.col("name").cast(pl.String) == _SELECTS
    )
    made = made.with_columns(node=ancestors(events, is_node).gather(made["id"])).drop_nulls("node")
    made = made.join(inputs, on="id", maintain_order="left")
    made = made.with_columns(
        start=events["start_ns"].gather(made["node"]), summed=made["node"].is_in(summed.implode())
    ).sort("track", "start")
    found = []
    for node, track, start, step, is_select, summed_up, text in made.select(
        "node", "track", "start", "step", "is_select", "summed", "inputs"
    ).iter_rows():
        taken = _taken(text, is_select)
        if taken is not None:
            found.append(_Slice(node, track, start, step, *taken, summed_up))
    return found


def _taken(text: str, is_select: bool) -> tuple[tuple[int, ...], int, int, int, int] | None:
    """Sizes and axis of the whole, begin, end and stride of the slice, as the op's inputs name them."""
    try:
        inputs = msgspec.json.decode(text, type=list[str])
        sizes = tuple(msgspec.json.decode(inputs[1], type=list[int]))
        axis, begin = int(inputs[2]) % len(sizes), int(inputs[3])
        length = sizes[axis]
        begin = begin + length if begin < 0 else begin
        if is_select:
            return sizes, axis, begin, begin + 1, 1
        end, stride = int(inputs[4]), int(inputs[5])
        end = min(end + length if end < 0 else end, length)
    except (msgspec.DecodeError, ValueError, IndexError, ZeroDivisionError):
        return None
    return (sizes, axis, begin, end, stride) if begin < end else None


def _ops_on_wholes(trace: Trace, groups: Sequence[Sequence[_Slice]]) -> dict[tuple[int, int], pl.Series]:
    """By thread and number of elements, when ops outside of the slices' nodes begin that are given an array of as many."""
    events = trace.events
    nodes = pl.Series([each.node for mine in groups for each in mine], dtype=pl.UInt32)
    is_node = pl.repeat(False, len(events), dtype=pl.Boolean, eager=True).scatter(nodes, True)
    outside = ancestors(events, is_node).is_null()
    tracks = {mine[0].track for mine in groups}
    wholes = {math.prod(mine[0].sizes) for mine in groups}
    ops = trace.ops.select("event", text="shapes").drop_nulls()
    ops = ops.with_columns(track=events["track"].gather(ops["event"]))
    ops = ops.filter(pl.col("track").is_in(list(tracks)), outside.gather(ops["event"]))
    texts = ops["text"].unique()
    sizes = [{math.prod(each) for each in arrays_in(text)} & wholes for text in texts.cast(pl.String)]
    found = {}
    for whole in wholes:
        given = texts.filter(pl.Series([whole in each for each in sizes], dtype=pl.Boolean))
        mine = ops.filter(pl.col("text").is_in(given.implode()))
        for track in tracks:
            on_track = mine.filter(pl.col("track") == track)["event"]
            found[track, whole] = events["start_ns"].gather(on_track).sort()
    return found


def _rows_of(
    mine: list[_Slice], between: dict[tuple[int, int], pl.Series]
) -> list[tuple[int, float, float, float, bool, bool]]:
    """The rows of slices that have step, thread, sizes and axis in common, in their order."""
    first = mine[0]
    whole = math.prod(first.sizes)
    places = Counter(each.place for each in mine)
    starts = pl.Series([each.start for each in mine], dtype=pl.Int64)
    runs = between[first.track, whole].search_sorted(starts).n_unique()
    tensors = max(runs, sum(not each.summed for each in mine))
    most = max(tensors, max(places.values()))
    overlap = _overlap(sorted(places))
    if overlap is None or len(mine) < SLICES_OF_TENSOR_LEAST * most:
        return []
    seen: Counter[tuple[int, int, int]] = Counter()
    rows = []
    for each in mine:
        length = len(range(each.begin, each.end, each.stride))
        again = seen[each.place] >= tensors
        seen[each.place] += 1
        piece = length / first.sizes[first.axis]
        rows.append((each.node, len(mine) / tensors, len(mine) / most, piece, overlap, again))
    return rows


def _overlap(places: Sequence[tuple[int, int, int]]) -> bool | None:
    """Whether slices overlap as windows do, which have one length and come at even distances; none if they overlap otherwise."""
    strides = {stride for _, _, stride in places}
    if strides != {1}:
        every = max(strides)
        apart = len(strides) == 1 and len(places) <= every
        return False if apart and max(begin for begin, _, _ in places) < every else None
    if all(end <= begin for (_, end, _), (begin, _, _) in pairwise(places)):
        return False
    lengths = {end - begin for begin, end, _ in places}
    hops = {after[0] - before[0] for before, after in pairwise(places)}
    return True if len(lengths) == len(hops) == 1 else None
