"""Loops of PyTorch that carry a state from turn to turn, as a recurrent cell written by hand does: no turn can begin before the last has ended.

A profile shows the sizes of what an op is given, not where it comes from. But a state begins somewhere: a function fills one with zeros, and each turn of its
loop multiplies a tensor of that very size, or joins it to the next input. Where the turns write into it instead, it collects their
results; and where each turn picks weights of its own, as those of experts, all of them may have the same input.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

import msgspec
import polars as pl

from stepscope.analysis.shapes import Shape, arrays_in
from stepscope.registers.policy.findings import MAJORITY
from stepscope.trace.lookup import are_named, events_named
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

CELLS = r"^aten::(lstm_cell|gru_cell|rnn_tanh_cell|rnn_relu_cell)$"  # one call of nn.LSTM runs all of them
_MAKERS = ("aten::zeros", "aten::zeros_like", "aten::new_zeros", "aten::ones", "aten::full", "aten::new_full")
_FILLS = ("aten::zero_", "aten::fill_")
_PRODUCTS = ("aten::linear", "aten::mm", "aten::matmul")
_WITH_BIAS = "aten::addmm"  # the bias comes first
_JOINS = "aten::cat"
_PICKS = "aten::select"
_COLLECTS = (
    "aten::add_",
    "aten::copy_",
    "aten::index_add_",
    "aten::index_copy_",
    "aten::index_put_",
    "aten::scatter_add_",
)
_TAKES, _WRITES, _WEIGHS, _CUTS = "takes", "writes", "weighs", "cuts"
_Uses = Counter[tuple[str, Shape]]


def frames_with_state(
    trace: Trace, functions: pl.Series, repeated: pl.DataFrame, loop_of: pl.Series
) -> list[int]:
    """The functions whose turns need the one before.

    `functions`: which events are functions of the user's, or steps; `repeated`: call, frame and times of the turns.
    """
    events = trace.events
    turns = repeated.group_by("frame").agg(pl.col("times").min(), first=pl.col("call").min())
    states = _states(trace, functions, turns)
    cells = loop_of.filter(events_named(events, lambda names: names.str.contains(CELLS)))
    found = set(states) - set(cells.unique())
    if not found:
        return []
    uses = _uses(trace, loop_of, list(found))
    least = {frame: MAJORITY * times for frame, times in turns.select("frame", "times").iter_rows()}
    return sorted(frame for frame in found if _carries(uses[frame], states[frame], least[frame]))


def _states(trace: Trace, functions: pl.Series, turns: pl.DataFrame) -> dict[int, set[Shape]]:
    """By looping function the sizes of what it fills before its first turn, as a whole and, where it is one for each layer, of a layer.

    A loop in an annotation has all that the function around it has filled.
    """
    events = trace.events
    around = ancestors(events, functions)
    within = pl.when(functions).then(events["id"]).otherwise(around)
    turns = turns.with_columns(function=pl.select(within).to_series().gather(turns["frame"]))
    made = are_named(events["name"], lambda names: names.is_in(_MAKERS)).gather(events["parent"])
    fills = are_named(events["name"], lambda names: names.is_in(_FILLS)) & made.fill_null(False)
    ops = trace.ops.filter(fills.gather(trace.ops["event"]))
    rows = ops.select("event", text=pl.col("shapes").cast(pl.String)).with_columns(
        function=around.gather(ops["event"])
    )
    rows = rows.join(turns, on="function")
    starts = events["start_ns"]
    before = rows.filter(starts.gather(rows["event"]) < starts.gather(rows["first"]))
    found: dict[int, set[Shape]] = defaultdict(set)
    for frame, text in before.select("frame", "text").iter_rows():
        for shape in arrays_in(text)[:1]:
            found[frame].update(each for each in (shape, shape[1:]) if len(each) > 1)
    return {frame: shapes for frame, shapes in found.items() if shapes}


def _uses(trace: Trace, loop_of: pl.Series, found: list[int]) -> dict[int, _Uses]:
    """By function how often the ops of its loop use arrays of a shape in some way."""
    wanted = (*_PRODUCTS, _WITH_BIAS, _JOINS, _PICKS, *_COLLECTS)
    products = events_named(trace.events, lambda names: names.is_in([*_PRODUCTS, _WITH_BIAS]))
    in_product = ancestors(
        trace.events, products
    ).is_not_null()  # on a CPU, addmm copies the bias into its result
    ops = trace.ops.select(
        "event", text=pl.col("shapes").cast(pl.String), inputs=pl.col("concrete_inputs").cast(pl.String)
    )
    ops = ops.with_columns(
        frame=loop_of.gather(ops["event"]), name=trace.events["name"].gather(ops["event"]).cast(pl.String)
    ).filter(pl.col("frame").is_in(found), pl.col("name").is_in(wanted))
    ops = ops.filter(~pl.col("name").is_in(_COLLECTS) | ~in_product.gather(ops["event"]))
    uses: dict[int, _Uses] = defaultdict(Counter)
    ops = ops.with_columns(side=pl.when(pl.col("name") == _PICKS).then("inputs")).drop("inputs", "event")
    counted = ops.drop_nulls(["frame", "name", "text"]).group_by("frame", "name", "text", "side").len()
    for frame, name, text, inputs, count in counted.iter_rows():
        for each in set(_uses_of(name, arrays_in(text), _side(inputs))):
            uses[frame][each] += count
    return uses


def _side(inputs: str | None) -> int | None:
    """On which side a select picks, where the profile says so."""
    try:
        return int(msgspec.json.decode(inputs or "[]", type=list[str])[1])
    except (msgspec.DecodeError, ValueError, IndexError):
        return None


def _uses_of(name: str, arrays: list[Shape], picked: int | None = None) -> Iterator[tuple[str, Shape]]:
    if name == _PICKS:
        for whole in arrays[:1]:
            # Weights come in a list, or stacked on their first side; a sequence has its time steps on another.
            sides = range(len(whole)) if picked is None else range(picked == 0)
            yield from ((_CUTS, whole[:side] + whole[side + 1 :]) for side in sides)
    elif name == _JOINS:
        yield from ((_TAKES, each) for each in arrays)
    elif name in _COLLECTS:
        yield from ((_WRITES, each) for each in arrays[:1])
    else:
        operands = arrays[1:] if name == _WITH_BIAS else arrays
        yield from zip((_TAKES, _WEIGHS), operands, strict=False)


def _carries(uses: _Uses, states: set[Shape], least: float) -> bool:
    """Whether most turns compute with a tensor of such a size, and neither collect results in it nor pick weights of their own."""
    weights = {shape for use, shape in uses if use == _WEIGHS}
    if any(uses[_CUTS, shape] >= least for shape in weights):
        return False
    return any(uses[_TAKES, shape] >= least > uses[_WRITES, shape] for shape in states)
