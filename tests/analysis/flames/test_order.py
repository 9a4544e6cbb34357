"""Flame graphs in time order: where calls lie, and that the answer is bounded by the screen."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.context import RankContext
from stepscope.analysis.flames import order
from stepscope.analysis.flames.costs import Costs
from stepscope.analysis.flames.order import Order, in_order, place_calls
from stepscope.analysis.ops.flame import by_stack
from stepscope.analysis.options import Options
from stepscope.profiles.load import load
from stepscope.trace.finish import finish
from stepscope.trace.trace import Trace
from tests.builders.tables import draft

SAMPLE = "src/stepscope/samples/tiny_gpt.pt.trace.json.gz"
CALLS = """
    track   start  dur  name   kind
    main        0  100  train  python
    main       10   40  work   python
    main       60   30  rest   python
    worker     20   30  load   python
    """


@pytest.fixture(scope="module")
def sample() -> Trace:
    return load(SAMPLE).traces[0]


def costs_of(trace: Trace, measure: str = "host", span: tuple[int, int] | None = None) -> Costs:
    return Costs(RankContext(0, trace, Options()), measure, span)


def drawn(costs: Costs, shown: tuple[int, int] | None, pixels: int) -> Order:
    return in_order(costs.trace, place_calls(costs), shown, pixels)


def boxes(found: Order) -> list[tuple[int, str, int, int]]:
    return [(row, found.names[name], x0, x1) for row, name, x0, x1, *_ in found.boxes.rows()]


def test_calls_lie_where_they_began_below_their_thread() -> None:
    found = drawn(costs_of(finish(draft(CALLS))), None, 1000)
    assert boxes(found) == [
        (0, "main", 0, 100),
        (1, "train", 0, 100),
        (2, "work", 10, 50),
        (2, "rest", 60, 90),
        (3, "worker", 0, 100),
        (4, "load", 20, 50),
    ]
    assert found.whole == 100


def test_a_part_of_the_axis_is_cut_at_its_edges() -> None:
    found = drawn(costs_of(finish(draft(CALLS))), (40, 70), 1000)
    assert (2, "work", 40, 50) in boxes(found)
    assert (2, "rest", 60, 70) in boxes(found)
    assert found.shown == (40, 70)


def test_what_is_narrower_than_a_pixel_is_one_box() -> None:
    found = drawn(costs_of(finish(draft(CALLS))), None, 2)
    assert found.boxes.filter(pl.col("row") == 2).select("x0", "x1", "calls").rows() == [
        (10, 50, 1),
        (60, 90, 1),
    ]
    one = drawn(costs_of(finish(draft(CALLS))), None, 1)
    assert one.boxes.filter(pl.col("row") == 2).select("x0", "x1", "calls").rows() == [(10, 90, 2)]


def test_by_cost_boxes_follow_each_other(sample: Trace) -> None:
    for measure in ("device", "memory"):
        costs = costs_of(sample, measure)
        found = drawn(costs, None, 100_000_000)
        top = by_stack(costs.trace, costs.own).nodes.filter(pl.col("parent") == -1)["total"].sum()
        assert found.whole == top
        outer = found.boxes.filter(pl.col("row") == 1)
        assert (outer["x1"] - outer["x0"]).sum() == top
        assert (outer["x0"][1:] == outer["x1"][:-1]).all()


def test_calls_of_all_boxes_are_all_calls_whatever_the_width(sample: Trace) -> None:
    few, many = (drawn(costs_of(sample), None, pixels) for pixels in (50, 5000))
    assert few.boxes["calls"].sum() == many.boxes["calls"].sum()
    assert len(few.boxes) < len(many.boxes)


def test_too_many_boxes_and_threads_are_counted(sample: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = drawn(costs_of(sample), None, 2000)
    monkeypatch.setattr(order, "FLAME_BOXES", 100)
    some = drawn(costs_of(sample), None, 2000)
    assert (len(some.boxes), some.left_out) == (100, len(whole.boxes) - 100)
    monkeypatch.setattr(order, "FLAME_THREADS", 1)
    assert drawn(costs_of(finish(draft(CALLS))), None, 100).threads_left_out == 1


def test_nothing_to_draw() -> None:
    found = drawn(costs_of(finish(draft("track start dur name kind"))), None, 100)
    assert (found.names, len(found.boxes)) == ([], 0)
