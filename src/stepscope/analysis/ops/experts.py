"""Mixtures of experts in which every expert computes every token, though each token is sent to a few of them.

What says so is a choice of the best among N scores for each of T tokens (`topk`), and in the same module N modules of one class that are
all given T rows, or a product of T rows with N stacked weights. Attention looks alike, with a product for each of N heads, or projections
of all rows: its keys have a size that a softmax is taken over, and what it projects meets between the calls.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace

import msgspec
import polars as pl

from stepscope.analysis.shapes import Shape, arrays_in, shapes_in
from stepscope.lazy import dataclass
from stepscope.registers.policy.repeated_work import EXPERTS_LEAST, ROUTED_TOKENS_LEAST
from stepscope.trace.lookup import is_named
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

_CHOICE = "aten::topk"
_PRODUCTS = ("aten::bmm", "aten::matmul", "aten::einsum", "aten::baddbmm")
_MODULE = "nn.Module: "
_LINEAR = "nn.Module: Linear"  # which layers of all kinds have
_SOFTMAX = r"^aten::_?softmax$"
_ATTENDS = r"attention|softmax"  # inside of a module
_MEETS = r"attention|^aten::(matmul|bmm|baddbmm)$"  # between two modules of a layer


@dataclass(frozen=True)
class Experts:
    """Calls of experts, or products with the weights of all, by their events, in a layer with `count` experts that sends each of `tokens` to `chosen` of them."""

    calls: list[int]
    count: int
    chosen: int
    tokens: int

    @property
    def share(self) -> float:
        """What is left of their work: few tokens take as long as reading the weights of the experts that any of them is sent to."""
        share = self.chosen / self.count
        return share if self.tokens >= ROUTED_TOKENS_LEAST else 1 - (1 - share) ** self.tokens


@dataclass(frozen=True)
class _Router:
    """A choice that a layer makes in this event: `is_own`, or in a module that it calls for this."""

    count: int
    chosen: int
    tokens: int
    event: int
    is_own: bool


def find_experts(trace: Trace, ops: pl.DataFrame) -> list[Experts]:
    """Of all layers in the steps; `ops` are those of the trace with names."""
    names = ops["name"].cast(pl.String)
    choices = ops.filter((names == _CHOICE) & ops["step"].is_not_null())
    if choices.is_empty():
        return []
    events = trace.events
    home = ancestors(events, is_named(events, f"^{_MODULE}"))
    routers: dict[int, _Router] = {}
    rows = choices.select("event", pl.col("shapes", "concrete_inputs").cast(pl.String))
    for event, shapes, inputs in rows.iter_rows():
        layer = home[event]
        router = _router(shapes, inputs, event)
        if router is None or layer is None:
            continue
        routers[layer] = router
        if home[layer] is not None:
            routers.setdefault(home[layer], replace(router, is_own=False))
    found = _of_modules(trace, ops, home, routers)
    return found or _of_products(ops, home, routers)


def _router(shapes: str | None, inputs: str | None, event: int) -> _Router | None:
    scores, numbers = next(iter(shapes_in(shapes)), ()), _decoded(inputs)
    chosen = str(numbers[1]) if len(numbers) > 1 else ""
    if len(scores) < 2 or not chosen.isdigit():
        return None
    router = _Router(scores[-1], int(chosen), math.prod(scores[:-1]), event, True)
    return router if router.count >= EXPERTS_LEAST else None


def _of_modules(
    trace: Trace, ops: pl.DataFrame, home: pl.Series, routers: dict[int, _Router]
) -> list[Experts]:
    """Modules of one class, as many as there are experts, that are called in one layer, each with all tokens."""
    events = trace.events
    modules = events.filter(is_named(events, f"^{_MODULE}")).select("id", pl.col("name").cast(pl.String))
    modules = modules.with_columns(layer=home.gather(modules["id"])).drop_nulls("layer")
    modules = modules.filter(pl.col("layer").is_in(list(routers)))
    modules = modules.with_columns(kind=pl.col("name").str.replace(r"_\d+$", ""))
    rows = _first_rows(ops, events, set(modules["id"].to_list()))
    groups: dict[tuple[int, str], dict[str, int]] = defaultdict(dict)
    for call, name, layer, kind in modules.select("id", "name", "layer", "kind").iter_rows():
        router = routers[layer]
        may_be = call > router.event and (router.is_own or kind != _LINEAR)
        if may_be and rows.get(call) == router.tokens:
            groups[layer, kind][name] = call
    chosen = [
        (layer, sorted(calls.values()))
        for (layer, _), calls in groups.items()
        if len(calls) == routers[layer].count
    ]
    attention = _attention(events, ops, home, chosen)
    return [
        Experts(calls, routers[layer].count, routers[layer].chosen, routers[layer].tokens)
        for layer, calls in chosen
        if layer not in attention
    ]


def _attention(
    events: pl.DataFrame, ops: pl.DataFrame, home: pl.Series, chosen: list[tuple[int, list[int]]]
) -> set[int]:
    """The layers whose modules attend, each for itself, or project what meets between their calls."""
    names = ops["name"].cast(pl.String)
    attends, meets = (
        ops["event"].filter(names.str.contains(pattern).fill_null(False)) for pattern in (_ATTENDS, _MEETS)
    )
    layer_of = {call: layer for layer, calls in chosen for call in calls}
    wanted = pl.repeat(False, len(events), dtype=pl.Boolean, eager=True).scatter(sorted(layer_of), True)
    inside = ancestors(events, wanted).gather(attends).drop_nulls()
    found = {layer_of[call] for call in inside.unique()}
    between = pl.DataFrame({"event": meets, "layer": home.gather(meets)})
    ends = [(layer, calls[0], calls[-1]) for layer, calls in chosen]
    known = pl.DataFrame(
        ends, schema={"layer": home.dtype, "first": pl.UInt32, "last": pl.UInt32}, orient="row"
    )
    # Events of a track are in the order of their starts.
    rows = between.join(known, on="layer").filter(pl.col("event").is_between("first", "last"))
    return found.union(rows["layer"])


def _first_rows(ops: pl.DataFrame, events: pl.DataFrame, calls: set[int]) -> dict[int, int]:
    """For each of these calls of modules the rows of the first array that it is given."""
    if not calls:
        return {}
    wanted = pl.repeat(False, len(events), dtype=pl.Boolean, eager=True).scatter(sorted(calls), True)
    mine = ops.with_columns(
        call=ancestors(events, wanted).gather(ops["event"]), start=events["start_ns"].gather(ops["event"])
    )
    mine = mine.drop_nulls("call").sort("start", "event").unique("call", keep="first", maintain_order=True)
    found = {}
    for call, shapes in mine.select("call", pl.col("shapes").cast(pl.String)).iter_rows():
        for first in shapes_in(shapes)[:1]:
            found[call] = math.prod(first[:-1])
    return found


def _of_products(ops: pl.DataFrame, home: pl.Series, routers: dict[int, _Router]) -> list[Experts]:
    """Products of all tokens with the weights of all experts."""
    mine = ops.filter(pl.col("name").cast(pl.String).is_in(_PRODUCTS), pl.col("outermost"))
    mine = mine.with_columns(layer=home.gather(mine["event"])).filter(pl.col("layer").is_in(list(routers)))
    keys = _softmax_sizes(ops, home)
    groups: dict[int, list[int]] = defaultdict(list)
    for event, layer, shapes in mine.select("event", "layer", pl.col("shapes").cast(pl.String)).iter_rows():
        router = routers[layer]
        is_behind = router.is_own and event > router.event
        if is_behind and _is_of_all(arrays_in(shapes), router, keys[layer]):
            groups[layer].append(event)
    return [
        Experts(calls, routers[layer].count, routers[layer].chosen, routers[layer].tokens)
        for layer, calls in groups.items()
    ]


def _softmax_sizes(ops: pl.DataFrame, home: pl.Series) -> dict[int, set[int]]:
    """By layer the sizes that a softmax is taken over: its last ones, as in attention."""
    mine = ops.filter(ops["name"].cast(pl.String).str.contains(_SOFTMAX).fill_null(False))
    rows = mine.select(layer=home.gather(mine["event"]), shapes=pl.col("shapes").cast(pl.String))
    found: dict[int, set[int]] = defaultdict(set)
    for layer, shapes in rows.drop_nulls().unique().iter_rows():
        found[layer].update(shape[-1] for shape in arrays_in(shapes)[:1])
    return found


def _is_of_all(operands: list[Shape], router: _Router, keys: set[int]) -> bool:
    """Whether one operand holds a matrix for each expert, and only the other one all tokens; `keys`: sizes of what is attended to."""
    for weights, given in (operands[:2], operands[1::-1]) if len(operands) > 1 else ():
        match weights, given:
            case [count, *sides], [*rows, _] if count == router.count and len(sides) == 2:
                for_each = rows == [router.count, router.tokens]
                once = math.prod(rows) == router.tokens and rows[:1] != [router.count]
                if (for_each or once) and router.tokens not in sides and keys.isdisjoint(sides):
                    return True
    return False


def _decoded(text: str | None) -> list[object]:
    try:
        return msgspec.json.decode(text or "[]", type=list[object])
    except (msgspec.DecodeError, ValueError):
        return []
