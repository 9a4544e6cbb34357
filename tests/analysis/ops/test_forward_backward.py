"""Backward ops and the forward ops they belong to."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.ops.calls import op_calls
from stepscope.trace.schema import TABLES
from tests.builders.tables import trace

EVENTS = """
    track     start  dur  name                                                 kind
    main          0   10  aten::addmm                                          op
    autograd     20   50  autograd::engine::evaluate_function: AddmmBackward0  op
    autograd     25   20  AddmmBackward0                                       op
    autograd     30    5  aten::mm                                             op
    autograd     50   10  aten::sum                                            op
    autograd     80   10  aten::add_                                           op
    """


def test_module_and_forward_op() -> None:
    """Inside the linked op, and inside the engine's op around it; other ops on the thread have none."""
    ops = pl.DataFrame([{"event": n, "scope": "Net/Linear_0" if n == 0 else None} for n in range(6)])
    links = pl.DataFrame([{"from": 0, "to": 2, "why": "forward-backward"}], schema=TABLES["links"])
    calls = op_calls(trace(EVENTS, ops=ops, links=links))
    told = {row["name"]: (row["scope"], row["forward"]) for row in calls.to_dicts()}
    assert told["aten::addmm"] == ("Net/Linear_0", None)
    assert told["aten::mm"] == told["aten::sum"] == told["AddmmBackward0"] == ("Net/Linear_0", "aten::addmm")
    assert told["aten::add_"] == (None, None)


def test_nothing_is_linked() -> None:
    calls = op_calls(trace(EVENTS, ops=pl.DataFrame([{"event": 0, "scope": "Net"}])))
    assert calls.select("scope", "forward").rows() == [("Net", None)]
