"""The events of a box: those with the same names around them."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.context import RankContext
from stepscope.analysis.flames.costs import MEASURES, Costs
from stepscope.analysis.flames.paths import Likeness, calls_below, events_like
from stepscope.analysis.ops.flame import by_scope, by_stack
from stepscope.analysis.options import Options
from stepscope.profiles.load import load
from stepscope.trace.finish import finish
from stepscope.trace.trace import Trace
from tests.builders.tables import draft

SAMPLE = "src/stepscope/samples/tiny_gpt.pt.trace.json.gz"
CALLS = """
    track   start  dur  name  kind
    main        0  100  a     python
    main       10   40  f     python
    main       15   20  f     python
    main       60   30  b     python
    main       65   20  f     python
    worker      0   50  a     python
    worker     10   20  f     python
    """


@pytest.fixture(scope="module")
def sample() -> Trace:
    return load(SAMPLE).traces[0]


def names(trace: Trace, **wanted: int | None) -> list[tuple[int, int]]:
    """Track and begin of what is found."""
    found = events_like(trace, Likeness(**wanted))  # type: ignore[arg-type]
    return trace.events[found].select("track", "start_ns").rows()


def test_the_whole_path_is_of_one_thread() -> None:
    trace = finish(draft(CALLS))
    outer = 1
    assert names(trace, like=outer) == [(0, 10)]
    assert names(trace, like=outer, levels=1) == [(0, 10), (1, 10)]
    assert names(trace, like=outer, levels=0) == [(0, 10), (0, 15), (0, 65), (1, 10)]


def test_a_recursion_counts_once() -> None:
    trace = finish(draft(CALLS))
    assert names(trace, like=1, levels=0, base=0) == [(0, 10), (0, 65), (1, 10)]
    assert names(trace, like=2, levels=1, base=1) == [(0, 15)]


@pytest.mark.parametrize("measure", MEASURES)
def test_events_of_a_node_sum_to_it(sample: Trace, measure: str) -> None:
    costs = Costs(RankContext(0, sample, Options()), measure)
    nodes = by_stack(costs.trace, costs.own).nodes.drop_nulls("like").sort("total", descending=True)
    for like, total in nodes.select("like", "total").head(60).iter_rows():
        found = events_like(costs.trace, Likeness(like))
        assert costs.totals.gather(found).sum() == total


def test_calls_below_a_scope_sum_to_its_node(sample: Trace) -> None:
    costs = Costs(RankContext(0, sample, Options()), "device")
    found = by_scope(costs.calls)
    paths: list[str] = []
    for parent, name, total in found.nodes.select("parent", "name", "total").iter_rows():
        paths.append(f"{paths[parent]}/{found.names[name]}" if parent >= 0 else found.names[name])
        assert calls_below(costs.calls, paths[-1], "top")["own"].sum() == total
    mm = calls_below(costs.calls, "aten::mm", "end")
    assert (
        mm["own"].sum()
        == costs.calls.filter(pl.col("name") == "aten::mm", pl.col("step").is_not_null())["own"].sum()
        > 0
    )
