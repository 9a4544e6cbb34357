"""Flame graphs of real recordings: their sums are those of the table of ops, and ranges add up."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

import stepscope
from stepscope.analysis.context import RankContext
from stepscope.analysis.flames.costs import Costs
from stepscope.analysis.flames.order import in_order, place_calls
from stepscope.analysis.ops.calls import ops_table
from stepscope.analysis.ops.flame import Flame, by_scope, by_stack
from stepscope.analysis.options import Options

CORPORA = [Path(os.environ.get(name, "/nonexistent")) for name in ("STEPSCOPE_CORPUS", "STEPSCOPE_CORPUS_2")]
FILES = [path for folder in CORPORA for path in sorted(folder.rglob("*.pt.trace.json.gz"))[:6]]

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not FILES, reason="STEPSCOPE_CORPUS has no Kineto trace"),
]


def top(found: Flame) -> int:
    return int(found.nodes.filter(pl.col("parent") == -1)["total"].sum())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_sums(path: Path) -> None:
    context = RankContext(0, stepscope.load(path).traces[0], Options())
    table = ops_table(context.op_calls)
    for measure in ("host", "device"):
        costs = Costs(context, measure)
        assert top(by_scope(costs.calls)) == table[f"{measure}_self_ns"].sum()
        tree = by_stack(costs.trace, costs.own)
        places = place_calls(costs)
        assert in_order(costs.trace, places, None, 1400).boxes["x1"].max() in (None, places.whole)
        if measure == "device":
            assert places.whole == max(1, top(tree))
