"""Promises: whatever a rule is told, the ends of the interval hold its middle."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.analysis.findings import spread
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.programs.host_ops import left_of_step
from stepscope.analysis.findings.promise import left_by_replay, no_more_than, of_kernels, shorten_kernels
from stepscope.analysis.findings.registry import find_rules
from stepscope.analysis.findings.spread import Spread
from tests.analysis.findings.op_steps import GEMM, Op, case

SHARES = st.floats(0, 1.5)
SPREADS = [each for each in vars(spread).values() if isinstance(each, Spread)]
PRODUCT = Op("aten::mm", "[[4096,1024],[1024,1024]]", GEMM, 300)
STEPS = [[PRODUCT, PRODUCT]] * 3
CASE = case(*STEPS)
RULE = next(rule for rule in find_rules() if rule.code == "slow-op")


def are_ordered(found: Interval) -> bool:
    return found.low <= found.mid <= found.high


def chosen(least: float, most: float) -> pl.DataFrame:
    """The share that is left of each product."""
    events = CASE.compute.kernels["event"]
    return pl.DataFrame({"event": events}).with_columns(least=pl.lit(least), most=pl.lit(most))


@given(low=SHARES, mid=SHARES, high=SHARES, work=SHARES, each=st.sampled_from(SPREADS), of_all=st.booleans())
def test_any_share_that_is_left(
    low: float, mid: float, high: float, work: float, each: Spread, of_all: bool
) -> None:
    gain = CASE.gain(Interval(low, mid, high), work=work, spread=each, of_all=of_all)
    assert gain.speedup.low >= 1 and are_ordered(gain.speedup)
    assert gain.left_ns is not None and are_ordered(gain.left_ns)


@given(least=SHARES, most=SHARES)
def test_any_share_of_kernels_and_of_ops(least: float, most: float) -> None:
    assert are_ordered(left_by_replay(CASE, shorten_kernels(CASE, chosen(least, most))))
    slices = CASE.slices.with_columns(least=pl.lit(least), most=pl.lit(most))
    assert are_ordered(left_of_step(CASE, slices))


@pytest.mark.parametrize(("least", "most"), [(0.1, 0.6), (0.6, 0.1), (0.0, 0.0), (1.0, 1.0), (0.3, 1.4)])
def test_a_finding_about_kernels(least: float, most: float) -> None:
    found = of_kernels(case(*STEPS), RULE, chosen(least, most), "is spent in vain.")
    assert isinstance(found, Finding)
    for ns in (0.0, 100_000.0, 900_000.0):
        bound = no_more_than(CASE, found, ns)
        assert are_ordered(bound.speedup)
        assert bound.left_ns_per_step is None or are_ordered(bound.left_ns_per_step)
