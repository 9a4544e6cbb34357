"""Starts of workers outside of the window, as the capture noted them."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.analysis.steps.noted_starts import find_noted_starts
from stepscope.analysis.steps.rhythm import find_rhythm
from tests.builders.cases import case_of_text, gemm

LENGTHS = [40_000_000] + [2_000_000] * 7


def found(rows: Any, lengths: list[int] = LENGTHS) -> Any:
    capture = {"steps": {"before": {"first": 3, "durations_ns": lengths * 4}}, "loader_starts": rows}
    trace = case_of_text(
        ["main  0  200  ProfilerStep#0  annotation  -", *gemm(10, 150)], capture=capture
    ).trace
    return find_noted_starts(trace, find_rhythm(trace))


def rows(*steps: int, start_ns: int = 10_000_000, wait_ns: int = 20_000_000) -> list[dict[str, int]]:
    return [{"step": step, "workers": 4, "start_ns": start_ns, "wait_ns": wait_ns} for step in steps]


def test_starts_in_the_slow_steps_make_these_slow() -> None:
    starts = found(rows(3, 11, 19, 27, 35))
    assert (starts.steps, starts.workers, starts.wait_ns) == ((3, 11, 19, 27), 4, 20_000_000)


def test_slow_steps_without_starts_have_another_cause() -> None:
    assert found(rows(4, 12, 20, 28)) is None
    assert found(rows(3, 11)) is None
    assert found([]) is None


def test_an_evaluation_with_a_loader_of_its_own_takes_longer_than_its_start() -> None:
    assert found(rows(3, 11, 19, 27, start_ns=4_000_000, wait_ns=6_000_000)) is None


def test_steps_of_one_length_need_no_reason() -> None:
    assert found(rows(3, 11, 19, 27), [40_000_000] * 8) is None


@pytest.mark.parametrize("damage", [None, "x", [1], [{"step": 3}], [{"step": "3", "workers": []}]])
def test_damaged_notes_say_nothing(damage: Any) -> None:
    assert found(damage) is None
