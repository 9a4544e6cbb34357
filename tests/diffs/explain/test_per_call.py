"""One kernel that differs per call is named where steps are not marked, and only there."""

from __future__ import annotations

import pytest

from stepscope.diffs.data.model import Row, Run
from stepscope.diffs.explain.per_call import describe_lone_kernel

STEP = Row(name="step", a=1e6, b=1e6, difference=0.0)


def kernel(name: str, a: float, b: float, a_calls: float = 10, b_calls: float = 8, op: str = "") -> Row:
    return Row(name=name, a=a, b=b, difference=b - a, a_calls=a_calls, b_calls=b_calls, op=op, noise=1.0)


# Eight calls instead of ten: less of everything, but equally long.
SAME = [kernel(f"same {number}", 1e5, 0.8e5) for number in range(4)]


def describe(rows: list[Row], source: str = "inferred") -> str:
    run = Run(path="a", step_source=source)
    return describe_lone_kernel(run, run, STEP, rows)


def test_the_one_that_differs() -> None:
    found = describe([*SAME, kernel("ncclSend", 1e5, 1.2e5)])
    assert found == (
        "Per call, one kernel differs: ncclSend, 10.0 µs → 15.0 µs (+50 %, within noise); all others are within 0 %."
    )


@pytest.mark.parametrize(
    "rows",
    [
        SAME,
        [*SAME, kernel("x", 1e5, 1.2e5), kernel("y", 1e5, 0.4e5)],
        [*SAME[:2], kernel("x", 1e5, 1.2e5)],
        [*SAME, kernel("too small", 1e2, 5e2)],
        [*SAME, kernel("only in A", 1e5, 0, b_calls=0)],
    ],
)
def test_nothing_is_said_otherwise(rows: list[Row]) -> None:
    assert describe(rows) == ""


def test_steps_that_are_marked_are_compared_instead() -> None:
    assert describe([*SAME, kernel("x", 1e5, 1.2e5)], "annotation") == ""


def test_the_same_kernel_of_several_ops_counts_once() -> None:
    split = [kernel("x", 1e5, 1.2e5, op="a"), kernel("x", 1e5, 1.2e5, op="b")]
    assert "x, 10.0 µs → 15.0 µs" in describe([*SAME, *split])
