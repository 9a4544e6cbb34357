"""Batches of which now and then one takes longer to make."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from tests.builders.cases import case_of_text, gemm

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
USUAL, SLOW = 1_000, 4_000


def timed(period: int, collections: int = 0, slow: int = SLOW) -> dict[str, Any]:
    """What the capture notes of a job that makes one batch in `period` for longer."""
    lengths = [USUAL * 1_000] * (period - 1) + [slow * 1_000]
    mean = sum(lengths) // period
    run = {"first": 0, "count": 4 * period, "full_collections": collections}
    return {
        "steps": {"before": {"first": 0, "durations_ns": lengths * 4}},
        "unprofiled_step": {"mean_ns": mean, "count": 4 * period},
        "unprofiled": {"before": run, "after": None},
    }


def case_of(
    slow: tuple[int, ...], capture: dict[str, Any], count: int = 4, name: str = LOADER, made: str = LOADER
) -> Case:
    """Steps that make their batch for 800 µs, and then compute for 150."""
    lines, now = [], 0
    for number in range(count):
        length = SLOW if number in slow else USUAL
        lines += [
            f"main  {now}  {length}  ProfilerStep#{number}  annotation  -",
            f"main  {now + 5}  790  {made}  annotation  -",
        ]
        if number in slow:
            lines.append(f"main  {now + 800}  {SLOW - USUAL}  {name}  annotation  -")
        lines += gemm(now + length - 190, 150)
        now += length
    case = case_of_text(lines, capture=capture)
    case.steps = replace(case.steps, source="marker")
    return case


def found_in(case: Case) -> dict[str, Finding]:
    return {each.code: each for each in apply_rules(case)}


def test_what_a_recorded_slow_batch_takes_longer_goes_with_the_others() -> None:
    case = case_of((1,), timed(4))
    assert case.slow_batches_ns == pytest.approx((SLOW - USUAL) * 1_000 / 4, rel=0.01)
    mine = found_in(case)["input-bound"]
    # 1.75 ms on average, of which 0.2 are not for batches.
    assert mine.speedup.high > 1.75 / 0.25
    assert (
        "one step in 4 takes 4.00 ms, the others 1.00 ms. Their batches take longer to make." in mine.detail
    )
    assert mine.evidence["slow_batches_ns"] == 750_000


def test_slow_steps_with_other_causes_add_nothing_to_batches() -> None:
    assert case_of((1,), timed(4), name="evaluate").slow_batches_ns == 0


def test_garbage_of_the_batches_is_theirs_also_where_no_slow_step_was_recorded() -> None:
    assert case_of((), timed(8)).slow_batches_ns == 0
    case = case_of((), timed(8, collections=4))
    assert not case.lacks_slow_steps
    mine = found_in(case)["input-bound"]
    assert mine.speedup.mid > 1
    assert "As often, Python looks for garbage among all of its objects" in mine.detail


def test_garbage_that_is_collected_in_every_step_makes_no_step_slow() -> None:
    assert case_of((), timed(8, collections=32)).slow_batches_ns == 0


def test_steps_that_make_longer_batches_are_no_outliers() -> None:
    case = case_of((2, 6), timed(4), count=8)
    assert case.outliers.is_empty()
    assert "step-outliers" not in found_in(case)
    others = case_of((2, 6), timed(4), count=8, name="evaluate")
    assert others.outliers["step"].to_list() == [2, 6]
    rare = case_of((2,), {}, count=8)
    assert rare.outliers["step"].to_list() == [2]


def test_garbage_is_named_where_it_is_not_of_batches() -> None:
    named, plain = (
        found_in(case_of((), timed(4, count, 2 * SLOW), count=3, made="evaluate"))["step-outliers"]
        for count in (4, 0)
    )
    assert "Python looks for garbage" in named.detail and "gc.freeze()" in named.fix
    assert "garbage" not in plain.detail + plain.fix
