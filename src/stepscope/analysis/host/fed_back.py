"""Loops of PyTorch in which each turn is given what the one before has chosen, as those that write a text token by token.

A profile shows the sizes of arrays, not where they come from. But a text, or its keys and values, is joined to the next piece in each
turn, is longer in the next, and is given to more than that joint, where results that are only collected are not. A text that Python keeps
grows from lookup to lookup. And where a state of a fixed size is kept, what was chosen is looked up next, with nothing taken in between;
or each turn begins by picking as many rows as the one before has chosen, as farthest-point sampling does.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise

import polars as pl

from stepscope.analysis.shapes import Shape, arrays_in
from stepscope.registers.policy.findings import MAJORITY
from stepscope.registers.policy.repeated_work import GROWING_CALLS_LEAST
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

_JOINS = ("aten::cat", "aten::concat", "aten::concatenate")
_LOOKS_UP = ("aten::embedding",)
_CHOOSES = ("aten::argmax", "aten::multinomial", "aten::topk", "aten::max")
_CHOOSES_ONE = ("aten::argmax", "aten::argmin", "aten::max", "aten::min")
_PICKS = ("aten::index", "aten::gather")
_WRITES = ("aten::select", "aten::slice")  # before a copy: what was chosen is kept among the results
_GOES_ON = frozenset(
    f"aten::{name}"
    for name in [
        "view",
        "reshape",
        "unsqueeze",
        "squeeze",
        "flatten",
        "detach",
        "alias",
        "contiguous",
        "cat",
        "concat",
        "concatenate",
        "expand",
        "t",
        "transpose",
        "eq",
        "ne",
        "any",
        "all",
        "logical_or",
        "bitwise_or",
        "__or__",
        "is_nonzero",
        "item",
        "_local_scalar_dense",
        "copy_",
        "fill_",
        "where",
        "add",
    ]
)
_Call = tuple[str, list[Shape]]


def frames_fed_back(trace: Trace, found: pl.DataFrame, loop_of: pl.Series) -> list[int]:
    """Of the functions that loop those whose turns need the one before; `found`: their frame and iterations."""
    calls = _calls(trace, loop_of)
    turns = dict(found.select("frame", "iterations").iter_rows())
    return sorted(
        frame
        for frame, mine in calls.items()
        if frame in turns
        and any(
            feeds(mine, MAJORITY * turns[frame]) for feeds in (_is_joined, _is_longer, _is_chosen, _is_picked)
        )
    )


def _calls(trace: Trace, loop_of: pl.Series) -> dict[int, list[_Call]]:
    """By looping function the ops that its turns call, none that another op calls, in their order."""
    events = trace.events
    is_op = (events["kind"] == "op").fill_null(False)
    mine = events.filter(is_op & loop_of.is_not_null() & ancestors(events, is_op).is_null())
    rows = mine.select("id", "start_ns", name=pl.col("name").cast(pl.String))
    shapes = trace.ops.select("event", text=pl.col("shapes").cast(pl.String))
    rows = rows.join(shapes, left_on="id", right_on="event", maintain_order="left").sort("start_ns")
    found: dict[int, list[_Call]] = defaultdict(list)
    known: dict[str | None, list[Shape]] = {}
    for frame, name, text in rows.select(loop_of.gather(rows["id"]), "name", "text").iter_rows():
        if text not in known:
            known[text] = arrays_in(text)
        found[frame].append((name, known[text]))
    return found


def _is_joined(calls: Sequence[_Call], least: float) -> bool:
    """Whether most turns join a piece to an array that is longer in the next turn, and that another op is given as well."""
    joined = Counter[int]()
    given = Counter(math.prod(each) for name, arrays in calls if name not in _JOINS for each in arrays)
    grown: set[Shape] = set()
    for name, arrays in calls:
        if name in _JOINS and len(arrays) == 2:
            if arrays[0] in grown and given[math.prod(arrays[0])]:
                joined[len(arrays[0])] += 1
            grown.update(_joint(*arrays))
    return any(count + 1 >= least for count in joined.values())


def _joint(first: Shape, second: Shape) -> list[Shape]:
    """What a joint of two arrays makes: as long as both, on the side in which they differ, or on any where they do not."""
    if len(first) != len(second):
        return []
    differ = [side for side, (one, other) in enumerate(zip(first, second, strict=True)) if one != other]
    if len(differ) > 1:
        return []
    sides = differ or range(len(first))
    return [(*first[:side], first[side] + second[side], *first[side + 1 :]) for side in sides]


def _is_longer(calls: Sequence[_Call], least: float) -> bool:
    """Whether lookups are of more and more numbers, from turn to turn as many more."""
    sizes = [math.prod(arrays[1]) for name, arrays in calls if name in _LOOKS_UP and len(arrays) > 1]
    steps = [after - before for before, after in pairwise(sizes) if after != before]
    if len(steps) + 1 < least:
        return False
    grown, count = Counter(steps).most_common(1)[0] if steps else (0, 0)
    return grown > 0 and count >= GROWING_CALLS_LEAST * len(steps)


def _is_chosen(calls: Sequence[_Call], least: float) -> bool:
    """Whether most turns look up as many numbers as the turn before has chosen, and take nothing from elsewhere in between."""
    count, chosen = 0, None
    for name, arrays in calls:
        if name in _CHOOSES and arrays:
            chosen = math.prod(arrays[0])
        elif name in _LOOKS_UP and chosen is not None and len(arrays) > 1:
            count += chosen % math.prod(arrays[1]) == 0
            chosen = None
        elif name not in _GOES_ON:
            chosen = None
    return count + 1 >= least


def _is_picked(calls: Sequence[_Call], least: float) -> bool:
    """Whether the first turn begins by picking rows, and most others by picking as many as the turn before has chosen.

    Turns that choose first and then pick what they have chosen need no other.
    """
    either = (*_PICKS, *_CHOOSES_ONE)
    first = next((name for name, _ in calls if name in either), None)
    if first not in _PICKS:
        return False
    count, chosen = 0, None
    for (name, arrays), (_, after) in pairwise([*calls, ("", [])]):
        if name in _CHOOSES_ONE and len(arrays) == 1 and len(arrays[0]) > 1:
            chosen = math.prod(arrays[0][:-1])
        elif name in _PICKS and chosen is not None and arrays:
            # An index has no shape in the profile; what it picks is given to the next op.
            picked = arrays[1:] if name == "aten::gather" else after
            count += any(math.prod(each) == chosen * arrays[0][-1] for each in picked)
            chosen = None
        elif name not in _GOES_ON and name not in _WRITES:
            chosen = None
    return count + 1 >= least
