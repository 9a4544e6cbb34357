"""The flame graph of a rank: modules and scopes, or call stacks; of all steps, of one, or of a range of time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from stepscope.analysis.context import RankContext
from stepscope.analysis.flames.costs import MEASURES, Costs, Span
from stepscope.analysis.flames.order import Order, in_order, place_calls
from stepscope.analysis.ops.flame import Flame, by_scope, by_stack
from stepscope.analysis.options import parse_steps
from stepscope.server.api.context import context_of, rank_context
from stepscope.server.api.report import wishes
from stepscope.server.api.routes import Answer, Ask, Json, RunRoute
from stepscope.server.http.request import LARGEST_INTEGER, BadRequest, Query
from stepscope.server.runs.opened import OpenedRun

WAYS = ("scope", "module", "stack")
WIDEST = 8_192  # pixels of a screen
USUAL = 1_600


def flame(ask: Ask) -> Answer:
    """Names, and a row of `columns` for each node."""
    way = "stack" if ask.query.choice("by", WAYS, "scope") == "stack" else "scope"
    wanted = wanted_costs(ask)
    return Json(ask.run.later(f"flame {way} {wanted.name}", lambda: _written_tree(_tree(wanted.costs, way))))


def order(ask: Ask) -> Answer:
    """Names, and a row of `columns` for each box, in the order of time; `low` and `high` are a part of the axis."""
    wanted = wanted_costs(ask)
    shown, pixels = _axis(ask.query), ask.query.integer("pixels", 1, WIDEST, USUAL)
    name = f"flame order {wanted.name} {shown} {pixels}"
    return Json(ask.run.later(name, lambda: _draw(ask.run, wanted, shown, pixels)))


def _draw(run: OpenedRun, wanted: Wanted, shown: Span | None, pixels: int) -> dict[str, Any]:
    """Zooming asks for one part of the picture after another: the places of all calls are worked out once."""
    places = run.kept(f"flame places {wanted.name}", lambda: place_calls(wanted.costs))
    return _written_order(in_order(wanted.costs.context.named_trace, places, shown, pixels))


@dataclass(frozen=True)
class Wanted:
    """What is summed up, and a name that no other wish has."""

    name: str
    costs: Costs


def wanted_costs(ask: Ask) -> Wanted:
    """By the measure, of the rank, and of the steps or the range of time that are asked for."""
    rank, step, step_name = wishes(ask.query)
    measure = ask.query.choice("measure", MEASURES, "host")
    span = _span(ask.query)
    name = f"{measure} {rank} {step} {step_name} {span}"
    return Wanted(name, Costs(_context(ask.run, ask.query), measure, span))


def _context(run: OpenedRun, query: Query) -> RankContext:
    """With the steps that the events behind a box are looked for in."""
    rank, step, step_name = wishes(query)
    number = run.profile.ranks[0] if rank is None else rank
    if step_name is not None or number not in run.profile.ranks:
        return rank_context(run, query)
    found = context_of(run, number)
    if step is not None:
        found.options = replace(found.options, steps=parse_steps(step))
    return found


def _span(query: Query) -> Span | None:
    """From and to, in the time of the trace, as the address of the trace viewer has them."""
    if not (query.has("from") or query.has("to")):
        return None
    return _pair(query, "from", "to", -LARGEST_INTEGER)


def _axis(query: Query) -> Span | None:
    return _pair(query, "low", "high", 0) if query.has("low") or query.has("high") else None


def _pair(query: Query, first: str, last: str, least: int) -> Span:
    low, high = (query.integer(name, least, LARGEST_INTEGER) for name in (first, last))
    if high <= low:
        raise BadRequest(f"{last} must come after {first}.", where=last)
    return low, high


def _tree(costs: Costs, way: str) -> Flame:
    return by_scope(costs.calls) if way == "scope" else by_stack(costs.trace, costs.own)


def _written_tree(found: Flame) -> dict[str, Any]:
    columns = found.nodes.columns
    return {"names": found.names, "columns": columns, "nodes": found.nodes.rows(), "left_out": found.left_out}


def _written_order(found: Order) -> dict[str, Any]:
    return {
        "names": found.names,
        "columns": found.boxes.columns,
        "boxes": found.boxes.rows(),
        "whole": found.whole,
        "shown": found.shown,
        "left_out": found.left_out,
        "threads_left_out": found.threads_left_out,
    }


ROUTES = (RunRoute("flame", flame), RunRoute("flame/order", order))
