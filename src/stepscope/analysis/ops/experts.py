"""Mixtures of experts in which every expert computes every token, though each token is sent to a few of them.

What says so is a choice of the best among N scores for each of T tokens (`topk`), and in the same module N modules of one class that are
all given T rows, or a product of T rows with N stacked weights.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace

import msgspec
import polars as pl

from stepscope.lazy import dataclass
from stepscope.registers.policy.repeated_work import EXPERTS_LEAST, ROUTED_TOKENS_LEAST
from stepscope.trace.lookup import is_named
from stepscope.trace.scopes import ancestors
from stepscope.trace.trace import Trace

_CHOICE = "aten::topk"
_PRODUCTS = ("aten::bmm", "aten::matmul", "aten::einsum", "aten::baddbmm")
_MODULE = "nn.Module: "
_LINEAR = "nn.Module: Linear"  # which layers of all kinds have


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
    """A choice that a layer makes at `start_ns`: `is_own`, or in a module that it calls for this."""

    count: int
    chosen: int
    tokens: int
    start_ns: int
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
        router = _router(shapes, inputs, events["start_ns"][event])
        if router is None or layer is None:
            continue
        routers[layer] = router
        if home[layer] is not None:
            routers.setdefault(home[layer], replace(router, is_own=False))
    found = _of_modules(trace, ops, home, routers)
    return found or _of_products(ops, home, routers)


def _router(shapes: str | None, inputs: str | None, start_ns: int) -> _Router | None:
    given, numbers = _decoded(shapes), _decoded(inputs)
    scores = given[0] if given and isinstance(given[0], list) else []
    chosen = str(numbers[1]) if len(numbers) > 1 else ""
    if len(scores) < 2 or not chosen.isdigit() or not all(isinstance(each, int) for each in scores):
        return None
    router = _Router(scores[-1], int(chosen), math.prod(scores[:-1]), start_ns, True)
    return router if router.count >= EXPERTS_LEAST else None


def _of_modules(
    trace: Trace, ops: pl.DataFrame, home: pl.Series, routers: dict[int, _Router]
) -> list[Experts]:
    """Modules of one class, as many as there are experts, that are called in one layer, each with all tokens."""
    events = trace.events
    modules = events.filter(is_named(events, f"^{_MODULE}")).select(
        "id", "start_ns", pl.col("name").cast(pl.String)
    )
    modules = modules.with_columns(layer=home.gather(modules["id"])).drop_nulls("layer")
    modules = modules.filter(pl.col("layer").is_in(list(routers)))
    modules = modules.with_columns(kind=pl.col("name").str.replace(r"_\d+$", ""))
    rows = _first_rows(ops, events, set(modules["id"].to_list()))
    groups: dict[tuple[int, str], dict[str, int]] = defaultdict(dict)
    for call, start_ns, name, layer, kind in modules.select(
        "id", "start_ns", "name", "layer", "kind"
    ).iter_rows():
        router = routers[layer]
        may_be = start_ns > router.start_ns and (router.is_own or kind != _LINEAR)
        if may_be and rows.get(call) == router.tokens:
            groups[layer, kind][name] = call
    found = []
    for (layer, _), calls in groups.items():
        router = routers[layer]
        if len(calls) == router.count:
            found.append(Experts(list(calls.values()), router.count, router.chosen, router.tokens))
    return found


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
        given = _decoded(shapes)
        if given and isinstance(given[0], list) and all(isinstance(each, int) for each in given[0]):
            found[call] = math.prod(given[0][:-1])
    return found


def _of_products(ops: pl.DataFrame, home: pl.Series, routers: dict[int, _Router]) -> list[Experts]:
    """Products of all tokens with the weights of all experts."""
    mine = ops.filter(pl.col("name").cast(pl.String).is_in(_PRODUCTS), pl.col("outermost"))
    mine = mine.with_columns(layer=home.gather(mine["event"])).filter(pl.col("layer").is_in(list(routers)))
    groups: dict[int, list[int]] = defaultdict(list)
    for event, layer, shapes in mine.select("event", "layer", pl.col("shapes").cast(pl.String)).iter_rows():
        if routers[layer].is_own and _is_of_all(_operands(_decoded(shapes)), routers[layer]):
            groups[layer].append(event)
    return [
        Experts(calls, routers[layer].count, routers[layer].chosen, routers[layer].tokens)
        for layer, calls in groups.items()
    ]


def _is_of_all(operands: list[list[int]], router: _Router) -> bool:
    """Whether one operand holds a matrix for each expert, and the other all tokens."""
    for weights, given in (operands[:2], operands[1::-1]) if len(operands) > 1 else ():
        match weights, given:
            case [count, side, _], [*rows, _] if count == router.count and side != router.tokens:
                for_each = rows == [router.count, router.tokens]
                once = math.prod(rows) == router.tokens and rows[:1] != [router.count]
                if for_each or once:
                    return True
    return False


def _operands(given: list[object]) -> list[list[int]]:
    """The arrays among the inputs, those of a list too."""
    found: list[list[int]] = []
    for each in given:
        if isinstance(each, list) and each and all(isinstance(size, int) for size in each):
            found.append(each)
        elif isinstance(each, list):
            found += _operands(each)
    return found


def _decoded(text: str | None) -> list[object]:
    try:
        return msgspec.json.decode(text or "[]", type=list[object])
    except (msgspec.DecodeError, ValueError):
        return []
