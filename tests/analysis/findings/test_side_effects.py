"""What goes with a cause: the nearest idle time, no more than is missing and no more than the cause itself."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.findings.side_effects import FOLLOWING, following

# slice, start, end, part
SLICES = pl.DataFrame(
    [
        (0, 0, 100, "dispatch"),
        (1, 100, 150, "sync"),
        (2, 150, 160, "compute"),
        (3, 160, 190, "dispatch"),
        (4, 190, 230, "input"),
        (5, 230, 260, "device_gap"),
        (6, 260, 400, "unexplained"),
    ],
    schema=["slice", "start_ns", "end_ns", "part"],
    orient="row",
).with_columns(ns=pl.col("end_ns") - pl.col("start_ns"))
OWNED = SLICES.filter(pl.col("slice") == 1)


@pytest.mark.parametrize(
    ("missing", "expected"),
    [(-5, []), (0, []), (1, [0]), (100, [0]), (1000, [0])],
)
def test_the_nearest_first_until_enough(missing: float, expected: list[int]) -> None:
    """However much is missing, at most as much again as the cause owns itself: here 50 ns, which the first slice covers."""
    assert following(SLICES, OWNED, missing, FOLLOWING)["slice"].to_list() == expected


def test_only_time_without_a_reason_of_its_own() -> None:
    """Input and compute stay with whoever they belong to."""
    owned = SLICES.filter(pl.col("slice") == 6)
    assert following(SLICES, owned, 135, FOLLOWING)["slice"].to_list() == [5, 3, 1, 0]
    assert following(SLICES, owned, 135, ("input", "compute"))["slice"].to_list() == [4, 2]
