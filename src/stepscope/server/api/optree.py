"""The tree of ops of a rank: modules and scopes with time and utilisation."""

from __future__ import annotations

from typing import Any

from stepscope.analysis.context import RankContext
from stepscope.analysis.op_tree import op_tree
from stepscope.server.api.context import rank_context
from stepscope.server.api.report import wishes
from stepscope.server.api.routes import Answer, Ask, Json, RunRoute

COLUMNS = (
    "parent", "name", "is_op", "calls", "self_host_ns", "total_host_ns", "self_device_ns", "total_device_ns", "utilisation",
)  # fmt: skip


def tree(ask: Ask) -> Answer:
    """A row for each node, in COLUMNS; parents come first."""
    name = "op tree {} {} {}".format(*wishes(ask.query))
    context = rank_context(ask.run, ask.query)
    return Json(ask.run.later(name, lambda: _written(context)))


def _written(context: RankContext) -> dict[str, Any]:
    found = op_tree(context)
    rows = found.nodes.select(COLUMNS).rows()
    return {"columns": COLUMNS, "nodes": rows, "left_out": found.left_out}


ROUTES = (RunRoute("optree", tree),)
