"""Steps in figures."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stepscope.statistics.summary import Spread, percentile, spread


def test_a_few_durations() -> None:
    assert spread([10, 30, 20, 40]) == Spread(
        median_ns=25, mean_ns=25, p10_ns=13, p90_ns=37, min_ns=10, max_ns=40
    )


def test_none() -> None:
    assert spread([]) is None


@given(st.lists(st.integers(1, 10**15), min_size=1, max_size=60))
def test_figures_are_in_order(durations: list[int]) -> None:
    found = spread(durations)
    assert found is not None
    assert found.min_ns <= found.p10_ns <= found.median_ns <= found.p90_ns <= found.max_ns
    assert found.min_ns <= found.mean_ns <= found.max_ns


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=30))
def test_percentiles_reach_both_ends(durations: list[int]) -> None:
    ordered = sorted(durations)
    assert (percentile(ordered, 0.0), percentile(ordered, 1.0)) == (ordered[0], ordered[-1])
