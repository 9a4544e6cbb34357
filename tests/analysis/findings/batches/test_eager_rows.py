"""Batches of JAX that are put together row by row."""

from __future__ import annotations

import pytest

from stepscope.analysis.context import RankContext
from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.options import Options
from tests.analysis.findings.programs.host_programs import handed_over, host_program_trace, run, run_inside
from tests.builders.hlo import program

STEP = """
main:
  x = f32[8,8] parameter(0)
  dot.1 = f32[8,8] dot(x, x)
"""


def loading(function: str, count: int, each: int, ran: int) -> Finding:
    """Steps of 1000 µs, 860 of which are in next_batch: it calls a program so many times, `each` µs and `ran` of them running."""
    rows = ["main  5  860  $ratings.py:23 next_batch  python"]
    for place in range(count):
        at = 10 + place * (each + 2)
        rows += [f"main  {at}  {each}  $array.py:338 __getitem__  python"]
        rows += run_inside(at + 1, each - 2, function, before=each - 4 - ran)
    rows += [*handed_over(870, "train"), *run(885, 100, "885  100  jit_train/dot.1  op")]
    codes = {f"jit_{name}": program(STEP) for name in (function, "train")}
    context = RankContext(0, host_program_trace(1_000, *rows, **codes), Options())
    return {one.code: one for one in apply_rules(context.case)}["input-bound"]


def test_rows_that_are_indexed_one_by_one_are_indexed_at_once() -> None:
    found = loading("dynamic_slice", 40, each=18, ran=2)
    assert "with one index" in found.fix
    assert found.evidence["calls_of_programs"] == 40
    assert found.speedup.low < 1000 / 140 < found.speedup.high
    assert found.speedup.mid > 1000 / 220


@pytest.mark.parametrize(
    ("count", "each", "ran"),
    [(5, 160, 2), (40, 18, 12), (40, 7, 1)],
    ids=["a few ops on the whole batch", "programs that compute", "calls that take less than half"],
)
def test_other_batches_get_workers(count: int, each: int, ran: int) -> None:
    found = loading("augment", count, each, ran)
    assert "workers" in found.fix and "calls_of_programs" not in found.evidence


def test_what_the_rows_compute_may_stay() -> None:
    few, many = (loading("dynamic_slice", 40, each=18, ran=ran) for ran in (1, 5))
    assert many.speedup.low < few.speedup.low
