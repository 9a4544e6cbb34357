"""Calls of PyTorch that build code and wait for the device to load it."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.findings.case import Case
from stepscope.analysis.replay.hidden_waits import hidden_waits
from tests.builders.cases import case_of_text

MS = 1_000_000
BUILDS = "aten::_cudnn_attention_forward"


def steps_that_build(*calls: tuple[int, int], kernel: int = 150, name: str = BUILDS) -> Case:
    """Steps of one op that launches a long kernel at its end; begin and end in ms."""
    lines = []
    for number, (begin, end) in enumerate(calls):
        until = calls[number + 1][0] if number + 1 < len(calls) else end + 1
        lines += [
            f"main  {begin * 1000}  {(until - begin) * 1000}  ProfilerStep#{number}  annotation  -",
            f"main  {begin * 1000}  {(end - begin) * 1000 + 20}  {name}  op  -",
            f"main  {end * 1000}  10  cudaLaunchKernel  runtime  gemm",
            f"stream 7  {end * 1000 + 10}  {kernel * 1000}  gemm  kernel  -",
        ]
    return case_of_text(lines)


def waits_in(made: Case) -> list[tuple[int, int]]:
    found = hidden_waits(made.trace, made.steps)
    begin = made.trace.events["start_ns"].min()
    rows = found.select((pl.col("start_ns", "end_ns") - begin) // MS).rows()
    return [(int(start), int(end)) for start, end in rows]


def test_a_call_that_takes_longer_while_the_device_is_busy_waits_for_it() -> None:
    """The first takes 40 ms by itself; the others end 1 ms after the device, and so have waited before their last millisecond."""
    made = steps_that_build((0, 40), (100, 191), (250, 342))
    assert waits_in(made) == [(139, 190), (289, 341)]


@pytest.mark.parametrize(
    "calls",
    [[(100, 191), (250, 341)], [(0, 40), (200, 240), (400, 440)], [(0, 9), (100, 160)], [(0, 40), (50, 140)]],
    ids=["none alone", "idle device", "a short one", "before the device is done"],
)
def test_calls_of_which_that_is_not_known(calls: list[tuple[int, int]]) -> None:
    assert waits_in(steps_that_build(*calls)) == []


def test_what_is_left_when_the_device_has_less_to_do() -> None:
    made = steps_that_build((0, 40), (41, 191), (192, 342), (343, 493))
    changed = made.plan.with_device(pl.lit(True), 0.1)
    assert changed.step_ns() < 0.6 * made.plan.step_ns()
