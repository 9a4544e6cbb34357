"""One pass of a model for each of many samples that are there before the first: texts, clips or images of a list, as batches of one.

No op cuts these samples from a tensor in front of the loop, so that their shapes have to show that no pass is given what another returned.
Texts that are longer and shorter in turn are none that a model writes, and no state that is computed again and again. And a sample that the
function itself makes a batch of one has lost that side, which what a pass returns has. What picks or joins between the passes may
make the next input, and so may a function of the user's that runs between reading a result and sending an input.
"""

from __future__ import annotations

from itertools import pairwise

import polars as pl

from stepscope.analysis.host.calls.passes import MODULE, module_calls, nearest
from stepscope.analysis.host.names import PREPARES_INPUT
from stepscope.analysis.shapes import Shape, arrays_in, shapes_in
from stepscope.registers.policy.findings import LOOP_ITERATIONS, MAJORITY, NEARLY_ALL
from stepscope.registers.policy.repeated_work import LENGTHS_TURN_LEAST
from stepscope.trace.lookup import are_named, events_named
from stepscope.trace.scopes import ancestors, at_or_inside
from stepscope.trace.trace import Trace

_LOOKS_UP = "aten::embedding"
_WEIGHS = rf"^({_LOOKS_UP}|aten::(linear|matmul|addmm|bmm|conv[123]d|convolution|layer_norm))$"
_MAKES_BATCH = ("aten::unsqueeze", "aten::view", "aten::reshape")
_DROPS_BATCH = (
    "aten::squeeze",
    "aten::select",
    "aten::view",
    "aten::reshape",
    "aten::flatten",
    "aten::index",
    "aten::slice",
    "aten::unbind",
    "aten::split",
    "aten::copy_",
)
_JOINS = ("aten::cat", "aten::concat", "aten::concatenate")
_CHOOSES = (
    "aten::argmax",
    "aten::argmin",
    "aten::multinomial",
    "aten::topk",
    "aten::max",
    "aten::min",
    "aten::sort",
    "aten::bernoulli",
    "aten::randn_like",
    *_JOINS,
)
_RECURRENT = r"^aten::(\w*lstm\w*|\w*gru\w*|\w*rnn\w*)$"
_GATES = ("aten::sigmoid", "aten::tanh")  # both of them: a recurrent cell that was written by hand
_UPDATES = r"^Optimizer\.step|run_backward"
_GROUP = ["frame", "name", "times"]


def sample_passes(trace: Trace, frames: pl.Series, launching: pl.Series) -> pl.DataFrame:
    """call, launches: the calls of modules, or of functions that call one, that one of these frames makes for one sample after the other."""
    events = trace.events
    calls = _calls(events, frames)
    if len(calls):
        inside = nearest(events, calls["call"])
        given = first_weighed(trace, inside)
        calls = calls.join(given, on="call", how="left", maintain_order="left")
        found = _independent(trace, frames, calls, inside)
        calls = calls.join(found, on=_GROUP, how="semi", maintain_order="left")
    held = pl.DataFrame({"turn": nearest(events, calls["turn"]).gather(launching)}).drop_nulls()
    counts = held.group_by("turn").agg(launches=pl.len())
    return calls.join(counts, on="turn", maintain_order="left").select(
        pl.col("turn").alias("call"), "launches"
    )


def _calls(events: pl.DataFrame, frames: pl.Series) -> pl.DataFrame:
    """call, frame, name, start_ns, times, turn: the calls of modules, and what the looping function itself calls for each: the module, or a helper."""
    columns = ["call", *_GROUP, "start_ns", "turn"]
    direct = module_calls(events, frames).with_columns(turn="call").select(columns)
    modules = are_named(events["name"], lambda names: names.str.starts_with(MODULE))
    in_helper = modules & (frames & frames.gather(events["parent"])).gather(events["parent"]).fill_null(False)
    helped = events.filter(in_helper & events["step"].is_not_null()).select(
        "name", "start_ns", call="id", turn="parent"
    )
    helped = helped.filter(pl.len().over("turn") == 1)
    helped = helped.with_columns(frame=events["parent"].gather(helped["turn"]))
    helped = helped.with_columns(times=pl.len().over("frame", "name")).filter(
        pl.col("times") >= LOOP_ITERATIONS
    )
    return pl.concat([direct, helped.select(columns)]).sort("start_ns")


def first_weighed(trace: Trace, inside: pl.Series) -> pl.DataFrame:
    """call, given (a text): the shape of what each pass gives to its first layer with weights; `inside`: by event the pass that it is in."""
    weighs = events_named(trace.events, lambda names: names.str.contains(_WEIGHS))
    chosen = (weighs & inside.is_not_null()).gather(trace.ops["event"])
    ops = trace.ops.filter(chosen).select("event", text=pl.col("shapes").cast(pl.String))
    ops = ops.with_columns(
        call=inside.gather(ops["event"]),
        op=trace.events["name"].gather(ops["event"]).cast(pl.String),
        start=trace.events["start_ns"].gather(ops["event"]),
    )
    first = ops.sort("start", "event").unique("call", keep="first", maintain_order=True).drop_nulls()
    texts = [_given(op, text) for op, text in first.select("op", "text").iter_rows()]
    return first.select("call").with_columns(given=pl.Series(texts, dtype=pl.List(pl.Int64)))


def _given(op: str, text: str) -> Shape | None:
    shapes = shapes_in(text)
    place = 1 if op in (_LOOKS_UP, "aten::addmm") else 0
    if len(shapes) <= place:
        return None
    sizes = shapes[place]
    # One row for a layer is a time step, an observation or a token.
    enough = len(sizes) > (1 if op == _LOOKS_UP else 2) and all(size > 0 for size in sizes)
    return sizes if enough and any(size > 1 for size in sizes[1:]) else None


def _independent(trace: Trace, frames: pl.Series, calls: pl.DataFrame, inside: pl.Series) -> pl.DataFrame:
    """The groups of passes with a batch of one that need none before them."""
    events = trace.events
    of_one = pl.col("given").is_not_null() & (pl.col("given").list.first() == 1)
    groups = calls.group_by(_GROUP, maintain_order=True).agg(
        of_one=of_one.fill_null(False).all(), given="given", begin=pl.col("start_ns").min()
    )
    groups = groups.filter("of_one")
    groups = groups.join(_with_state(trace, calls, inside), on=_GROUP, how="anti", maintain_order="left")
    if groups.is_empty():
        return groups.select(_GROUP)
    looping = groups["frame"].unique()
    around = nearest(events, looping)
    beside = inside.is_null() & around.is_not_null() & ~events["id"].is_in(looping.implode())
    between = beside & _is_between(events, around, calls)
    own = _own(events, frames, between) & ~events["id"].is_in(calls["turn"].implode())
    barred, helped = _barred(trace, own, around, between)
    mine = _beside(trace, around, beside)
    found = []
    for row in groups.iter_rows(named=True):
        frame, given = row["frame"], [tuple(sizes) for sizes in row["given"]]
        is_sample = _goes_up_and_down(given) or (
            frame not in helped and _is_made_a_batch(given, mine.get(frame, []))
        )
        found.append(frame not in barred and is_sample)
    return groups.filter(pl.Series(found, dtype=pl.Boolean)).select(_GROUP)


def _with_state(trace: Trace, calls: pl.DataFrame, inside: pl.Series) -> pl.DataFrame:
    """Passes that may carry a state: with a recurrent network, with the gates of one, or with more ops than the first has, or others."""
    events = trace.events
    recurrent = inside.filter(events_named(events, lambda names: names.str.contains(_RECURRENT)))
    gated = [
        inside.filter(events_named(events, lambda names, gate=gate: names == gate)).drop_nulls().implode()  # type: ignore[misc]
        for gate in _GATES
    ]
    is_op = (events["kind"] == "op").fill_null(False)
    counts = pl.DataFrame({"call": inside.filter(is_op)}).drop_nulls().group_by("call").agg(ops=pl.len())
    known = calls.join(counts, on="call", how="left", maintain_order="left").with_columns(
        pl.col("ops").fill_null(0),
        gated=pl.col("call").is_in(gated[0]) & pl.col("call").is_in(gated[1]),
        recurrent=pl.col("call").is_in(recurrent.drop_nulls().implode()),
    )
    usual = pl.col("ops").mode().max()
    grouped = known.group_by(_GROUP).agg(
        state=(pl.col("gated") | pl.col("recurrent")).any()
        | (pl.col("ops").first() < usual)
        | ((pl.col("ops") == usual).mean() < NEARLY_ALL)
    )
    return grouped.filter("state").select(_GROUP)


def _is_between(events: pl.DataFrame, around: pl.Series, calls: pl.DataFrame) -> pl.Series:
    """Which events begin after the first of a frame's passes and before the last."""
    spans = calls.group_by("frame").agg(first=pl.col("start_ns").min(), last=pl.col("start_ns").max())
    rows = pl.DataFrame({"frame": around, "start": events["start_ns"]})
    rows = rows.join(spans, on="frame", how="left", maintain_order="left")
    found: pl.Series = rows.select(pl.col("start").is_between("first", "last")).to_series().fill_null(False)
    return found


def _barred(trace: Trace, own: pl.Series, around: pl.Series, between: pl.Series) -> tuple[set[int], set[int]]:
    """The frames that may need a result between their passes for the next one, and those that may where samples are alike.

    The former update weights or send gradients back, choose or join something, or compute on the host from a result before they send the
    next input. The latter call functions of the user's (`own`), or send inputs and read results.
    """
    events = trace.events
    sends = are_named(events["name"], lambda names: names.str.contains(_UPDATES))
    chooses = events_named(events, lambda names: names.is_in(_CHOOSES))
    needed, called = (set(around.filter(each & between).drop_nulls()) for each in (sends | chooses, own))
    sent, back = (_copying(trace, around, between, direction) for direction in ("HtoD", "DtoH"))
    return needed | (sent & back & called), called | (sent & back)


def _own(events: pl.DataFrame, frames: pl.Series, between: pl.Series) -> pl.Series:
    """Calls of the user's functions that do more than read and prepare an input."""
    prepares = are_named(events["name"], lambda names: names.str.contains(PREPARES_INPUT))
    return between & frames & ~at_or_inside(events, prepares)


def _copying(trace: Trace, around: pl.Series, between: pl.Series, direction: str) -> set[int]:
    """The frames that launch copies in this direction between their passes."""
    copies = trace.copies.filter(pl.col("direction").cast(pl.String) == direction).select("event")
    links = trace.links.filter(pl.col("why") == "launch").select("from", event="to")
    calls = copies.join(links, on="event")["from"]
    return set(around.gather(calls.filter(between.gather(calls))).drop_nulls())


def _beside(trace: Trace, around: pl.Series, beside: pl.Series) -> dict[int, list[tuple[str, Shape, int]]]:
    """By frame what its own ops are given outside of the passes: op, shape, how often; none that another op calls."""
    events = trace.events
    is_op = (events["kind"] == "op").fill_null(False)
    chosen = (beside & is_op & ancestors(events, is_op).is_null()).gather(trace.ops["event"])
    rows = trace.ops.filter(chosen).select("event", text=pl.col("shapes").cast(pl.String))
    rows = rows.with_columns(
        frame=around.gather(rows["event"]), op=events["name"].gather(rows["event"]).cast(pl.String)
    ).drop_nulls()
    found: dict[int, list[tuple[str, Shape, int]]] = {}
    for frame, op, text, count in rows.group_by("frame", "op", "text").len().sort("text", "op").iter_rows():
        found.setdefault(frame, []).extend((op, shape, count) for shape in arrays_in(text))
    return found


def _goes_up_and_down(given: list[Shape]) -> bool:
    """Whether at many samples lengths turn from growing to shrinking, or back."""
    steps = [after - before for before, after in pairwise(sum(shape) for shape in given)]
    turns = sum(before * after < 0 for before, after in pairwise(steps))
    return turns >= LENGTHS_TURN_LEAST * (len(steps) - 1)


def _is_made_a_batch(given: list[Shape], beside: list[tuple[str, Shape, int]]) -> bool:
    """Whether the function makes each sample a batch of one, changes none, and takes no result that is as large out of its batch."""
    rests = {shape[1:] for shape in given}
    made = sum(count for op, shape, count in beside if op in _MAKES_BATCH and shape in rests)
    changed = any(shape in rests for op, shape, _ in beside if op not in _MAKES_BATCH)
    returned = any(shape in set(given) for op, shape, _ in beside if op in _DROPS_BATCH)
    return made >= MAJORITY * len(given) and not changed and not returned
