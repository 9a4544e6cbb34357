"""The flame graph of a rank: modules and scopes, or call stacks."""

from __future__ import annotations

from typing import Any

from stepscope.analysis.context import RankContext
from stepscope.analysis.ops.calls import op_calls
from stepscope.analysis.ops.flame import Flame, by_scope, by_stack, device_times, host_times
from stepscope.analysis.options import Options, parse_steps
from stepscope.server.api.report import wishes
from stepscope.server.api.routes import Answer, Ask, Json, RunRoute
from stepscope.server.http.request import Query
from stepscope.server.runs.opened import OpenedRun

WAYS = ("scope", "module", "stack")
MEASURES = ("host", "device")


def flame(ask: Ask) -> Answer:
    """Names, and a row for each node."""
    rank, step, step_name = wishes(ask.query)
    way = ask.query.choice("by", WAYS, "scope")
    measure = ask.query.choice("measure", MEASURES, "host")
    context = rank_context(ask.run, ask.query)
    name = f"flame {way} {measure} {rank} {step} {step_name}"
    return Json(ask.run.later(name, lambda: _drawn(_flame(context, way, measure))))


def rank_context(run: OpenedRun, query: Query) -> RankContext:
    """What analyses ask of one rank; the first rank where none is named."""
    rank, step, step_name = wishes(query)
    number = run.profile.ranks[0] if rank is None else rank
    return RankContext(
        number, run.profile.trace(number), Options(step_name, parse_steps(step) if step is not None else None)
    )


def _flame(context: RankContext, way: str, measure: str) -> Flame:
    if way != "stack":
        return by_scope(context.op_calls, measure)
    trace = context.trace
    return by_stack(trace, host_times(trace) if measure == "host" else device_times(trace, op_calls(trace)))


def _drawn(found: Flame) -> dict[str, Any]:
    return {"names": found.names, "nodes": found.nodes.rows(), "left_out": found.left_out}


ROUTES = (RunRoute("flame", flame),)
