"""What a case says of the work that is left for a device."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from stepscope.analysis.replay.plan import SPEEDS
from tests.builders.cases import case_of_text, gemm, steps


def test_work_that_overlaps_counts_once() -> None:
    case = case_of_text(steps(*gemm(0, 300), *gemm(400, 300)))
    assert case.work_ns(case.plan) == 600_000
    for gap, work in ((-50_000, 500_000), (50_000, 600_000)):  # before each of the two
        items = case.plan.items.with_columns(gap_ns=pl.lit(gap, pl.Int64))
        assert case.work_ns(replace(case.plan, items=items)) == work


def test_work_that_a_change_took_away_overlaps_with_nothing() -> None:
    case = case_of_text(steps(*gemm(0, 300), *gemm(400, 300)))
    items = case.plan.items.with_columns(gap_ns=pl.lit(-50_000, pl.Int64), device_ns=pl.lit(0, pl.Int64))
    assert case.work_ns(replace(case.plan, items=items)) == 0


@pytest.mark.parametrize(("played_us", "share"), [(500, 0.9), (950, 0.95), (1100, 1.0)])
def test_no_step_is_shorter_without_the_profiler_than_its_work(played_us: int, share: float) -> None:
    """The recorded replay begins with an empty queue, which may make it longer than the step was."""
    case = case_of_text(steps(*gemm(0, 450), *gemm(500, 450)))
    case.__dict__["played"] = dict.fromkeys(SPEEDS, 1000.0 * played_us)
    case.__dict__["recorded_ns"] = case.step_ns
    assert case.unprofiled_share == pytest.approx(share)
