"""Loops that read values one by one, and what is left of the step without them."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.findings.apply import apply_rules
from tests.builders.cases import case_of_text, gemm, steps


def read_values(at: int, count: int) -> list[str]:
    """A function that makes and reads so many values, 40 µs each."""
    rows = [f"main  {at}  {40 * count}  pose.py(42): decode  python  -"]
    for begin in range(at, at + 40 * count, 40):
        rows += [f"main  {begin}  14  aten::argmax  op  -", *gemm(begin + 2, 4, begin=begin + 14)]
        rows += [f"main  {begin + 15}  24  aten::_local_scalar_dense  op  -"]
        rows += [f"main  {begin + 16}  6  cudaStreamSynchronize  runtime  -"]
    return rows


def compute(at: int, us: int) -> list[str]:
    """An op of the host that launches a little work."""
    return [f"main  {at}  {us}  aten::conv2d  op  -", *gemm(at + us - 14, 4, begin=at + us)]


ONCE = [*compute(0, 180), *read_values(200, 18), *compute(925, 60)]
TWICE = [*compute(0, 90), *read_values(95, 9), *compute(460, 90), *read_values(555, 9), *compute(925, 60)]
SHORT = [*compute(0, 580), *read_values(600, 8), *compute(925, 60)]


@pytest.mark.parametrize(("rows", "is_warmed"), [(ONCE, True), (TWICE, False), (SHORT, False)])
def test_the_rest_is_dispatched_from_warm_caches_without_one_long_loop(
    rows: list[str], is_warmed: bool
) -> None:
    """Short loops between the ops of a step put nothing out of the caches."""
    case = case_of_text(steps(*rows))
    found = {each.code: each for each in apply_rules(case)}
    assert found["device-sync"].where[0].function == "decode"
    change = case.changes["device-sync"]
    outside = case.trace.events["name"].cast(pl.String) == "aten::conv2d"
    mine = pl.col("event").is_in(case.trace.events["id"].filter(outside).implode())
    was, at_worst = (int(plan.host.filter(mine)["ns"].sum()) for plan in (case.plan, change.smallest))
    assert at_worst == pytest.approx(was * (0.9 if is_warmed else 1), rel=0.001)
