"""What a slow step is, for lists and for frames."""

from __future__ import annotations

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.registers.levels import SLOW_STEP_FEWEST
from stepscope.statistics.slow_steps import is_slow, slow_limit


@pytest.mark.parametrize(
    ("durations", "slow"),
    [
        ([100] * 9 + [149], []),  # not by half
        ([100] * 9 + [151], [151]),
        ([70, 85, 100, 115, 130, 180], []),  # the spread is that wide
        ([70, 85, 100, 115, 130, 300], [300]),
        ([100] * 6 + [160] * 4, [160] * 4),  # many, and still not the usual ones
        ([100, 100, 100, 500], []),  # too few to say what is usual
        ([], []),
    ],
)
def test_slow_steps(durations: list[int], slow: list[int]) -> None:
    limit = slow_limit(durations)
    assert [each for each in durations if each > limit] == slow
    rows = pl.DataFrame({"ns": durations}, schema={"ns": pl.Int64})
    assert rows.filter(is_slow(pl.col("ns")))["ns"].to_list() == slow


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 10**12)), max_size=60))
def test_frames_are_judged_as_lists_are(rows: list[tuple[int, int]]) -> None:
    frame = pl.DataFrame(rows, schema={"rank": pl.Int32, "ns": pl.Int64}, orient="row")
    limits = {rank: slow_limit([ns for each, ns in rows if each == rank]) for rank in range(3)}
    found = frame.with_columns(slow=is_slow(pl.col("ns"), ["rank"]))["slow"].to_list()
    assert found == [ns > limits[rank] for rank, ns in rows]


@given(st.lists(st.integers(1, 10**12), min_size=SLOW_STEP_FEWEST, max_size=60))
def test_at_most_half_are_slow(durations: list[int]) -> None:
    limit = slow_limit(durations)
    assert math.isfinite(limit)
    assert 2 * sum(each > limit for each in durations) <= len(durations)
