"""One kernel that differs per call is named where steps are not marked, and only there."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.diffs.data.model import Run
from stepscope.diffs.data.samples import conform_table
from stepscope.diffs.explain.per_call import describe_lone_kernel

Calls = dict[str, list[int]]
# Eight calls instead of ten: less of everything, but equally long.
SAME = {f"same {number}": [100, 101] for number in range(4)}


def clip(calls: Calls, times: int) -> pl.DataFrame:
    """The calls of each kernel, so many times."""
    rows = [
        (name, times * sum(each), times * len(each), times * float(sum(ns * ns for ns in each)))
        for name, each in calls.items()
    ]
    frame = pl.DataFrame(rows, schema=["name", "ns", "calls", "squares"], orient="row")
    return conform_table("clip", frame.with_columns(recording=0, rank=0))


def describe(a: Calls, b: Calls, source: str = "inferred") -> str:
    run = Run(path="a", step_source=source)
    return describe_lone_kernel(run, run, clip(SAME | a, 5), clip(SAME | b, 4))


def test_the_one_that_differs() -> None:
    found = describe({"ncclSend": [100, 102]}, {"ncclSend": [150, 153]})
    assert found == (
        "Per call, one kernel differs: ncclSend, 101 ns → 152 ns (+50 %); all others are within 0 %."
    )


def test_calls_that_scatter_as_much_are_noise() -> None:
    found = describe({"ncclSend": [10, 300]}, {"ncclSend": [20, 350]})
    assert "(+19 %, within noise)" in found


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({}, {}),
        ({"x": [100], "y": [100]}, {"x": [150], "y": [50]}),
        ({"too small": [1]}, {"too small": [5]}),
        ({"only in A": [100]}, {}),
        ({"without length": [0]}, {"without length": [0]}),
    ],
)
def test_nothing_is_said_otherwise(a: Calls, b: Calls) -> None:
    assert describe(a, b) == ""


def test_few_kernels_are_not_enough() -> None:
    run = Run(path="a", step_source="inferred")
    assert describe_lone_kernel(run, run, clip({"x": [100]}, 5), clip({"x": [150]}, 5)) == ""


def test_steps_that_are_marked_are_compared_instead() -> None:
    assert describe({"x": [100]}, {"x": [150]}, "annotation") == ""
