"""What the capture has counted of lengths, read from a file that anyone may have written."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from stepscope.analysis.lengths import CountedLengths, counted_lengths
from stepscope.trace.trace import Trace
from tests.builders.traces import trace

GOOD: dict[str, Any] = {
    "framework": "torch",
    "of": "ids",
    "shape": [4, 64],
    "calls": 3,
    "mean": 18.0,
    "longest": 32.0,
}


def read(noted: object) -> list[CountedLengths]:
    made = trace()
    info = dataclasses.replace(made.info, capture={"lengths": noted})
    return counted_lengths(Trace({**made.tables, "traces": info.frame()}))


def test_shares_are_of_all_positions() -> None:
    [row] = read([GOOD])
    assert (row.positions, row.mean_share, row.longest_share) == (64, 18 / 64, 0.5)


def test_samples_may_all_be_full() -> None:
    assert len(read([GOOD | {"mean": 64.0, "longest": 64.0}])) == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"mean": 0.0},
        {"mean": -1.0},
        {"mean": 33.0},
        {"longest": 65.0},
        {"shape": [4]},
        {"shape": [4, 0]},
        {"calls": 0},
        {"of": "hearsay"},
        {"mean": "18"},
    ],
)
def test_a_row_that_cannot_be_is_left_out(changed: dict[str, Any]) -> None:
    assert len(read([GOOD | changed, GOOD])) == 1


@pytest.mark.parametrize("noted", [None, 3, {}, "lengths", [None], [[]]])
def test_what_is_no_list_of_rows_is_nothing(noted: object) -> None:
    assert read(noted) == []
