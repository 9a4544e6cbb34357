"""Workers of a DataLoader that are started again for each epoch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from tests.builders.cases import case_of_text, gemm

LOADER = "torch/utils/data/dataloader.py"
USUAL, SLOW = 200, 1800


def case_of(slow: tuple[int, ...], count: int = 4, capture: dict[str, Any] | None = None) -> Case:
    """Steps of 200 µs, but those in which workers are started again."""
    lines, now = [], 0
    for number in range(count):
        is_slow = number in slow
        length = SLOW if is_slow else USUAL
        lines.append(f"main  {now}  {length}  ProfilerStep#{number}  annotation  -")
        if is_slow:
            lines += [
                f"main  {now}  300  {LOADER}(1625): _shutdown_workers  python  -",
                f"main  {now + 300}  1200  {LOADER}(428): _get_iterator  python  -",
                f"main  {now + 310}  1100  multiprocessing/process.py(110): start  python  -",
                f"main  {now + 1500}  100  enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__  annotation  -",
                f"main  {now + 1505}  90  {LOADER}(1452): _get_data  python  -",
            ]
        lines += gemm(now + length - 190, 150)
        now += length
    case = case_of_text(lines, capture=capture or {})
    if capture:
        case.steps = replace(case.steps, source="marker")
    return case


def timed(period: int) -> dict[str, Any]:
    """What the capture notes of a job with an epoch of so many steps."""
    lengths = [USUAL * 1_000] * (period - 1) + [SLOW * 1_000]
    mean = sum(lengths) // period
    return {
        "steps": {"before": {"first": 0, "durations_ns": lengths * 4}},
        "unprofiled_step": {"mean_ns": mean, "count": 4 * period},
    }


def found_in(case: Case) -> dict[str, Finding]:
    return {each.code: each for each in apply_rules(case)}


def test_the_promise_is_for_the_mean_of_all_steps() -> None:
    found = found_in(case_of((1,), capture=timed(8)))
    (first, mine), *_ = found.items()
    assert first == "input-bound"
    # 400 µs on average, 200 between starts; a part of the wait for the first batch stays.
    assert mine.speedup.low < 2 < mine.speedup.high
    assert mine.speedup.mid == pytest.approx(2, rel=0.05)
    assert "persistent_workers=True" in mine.fix
    assert "one step in 8" in mine.detail
    assert mine.evidence["steps"] == [1]
    assert "step-outliers" not in found


def test_starts_that_recur_in_the_recording_say_how_often() -> None:
    mine = found_in(case_of((2, 6), count=9))["input-bound"]
    assert mine.evidence["period"] == 4
    assert mine.speedup.mid == pytest.approx((3 * USUAL + SLOW) / 4 / USUAL, rel=0.15)


def test_a_single_start_leaves_open_how_often_it_comes() -> None:
    mine = found_in(case_of((3,)))["input-bound"]
    known = found_in(case_of((3,), capture=timed(8)))["input-bound"]
    assert mine.evidence["period"] is None
    assert mine.speedup.low < known.speedup.low < known.speedup.high < mine.speedup.high
    assert "every 4 to 40 steps" in mine.detail


def test_epochs_of_a_single_batch_start_workers_in_every_step() -> None:
    mine = found_in(case_of((0, 1, 2, 3)))["input-bound"]
    assert mine.speedup.mid > 2
    assert "In 4 of 4 steps a DataLoader starts 1 worker process again." in mine.detail
    assert "persistent_workers=True" in mine.fix


def test_other_changes_gain_only_in_the_time_of_usual_steps() -> None:
    case = case_of((1,), capture=timed(8))
    assert case.recorded.usual_share == pytest.approx(0.5 * 7 / 8)
    assert case.basis_ns == pytest.approx(USUAL * 1_000)


def test_nothing_is_promised_where_no_slow_step_was_recorded() -> None:
    case = case_of((), capture=timed(16))
    assert not case.lacks_slow_steps  # 300 µs on average: most of it is recorded
    found = apply_rules(case_of((), capture=timed(6)))
    assert {each.speedup.high for each in found} == {1.0}
    (mine,) = [each for each in found if each.code == "step-outliers"]
    assert "one in 6 takes 1.80 ms where the others take 200 µs" in mine.detail
    assert "Record 6 steps or more" in mine.fix


def test_a_host_that_waits_for_the_device_now_and_then_lacks_none() -> None:
    """Its steps come in bursts, but the recorded ones are as long as the mean."""
    bursts = timed(4)
    lengths = [10_000, 10_000, 10_000, 4 * USUAL * 1_000 - 30_000]
    bursts["steps"]["before"]["durations_ns"] = lengths * 4
    bursts["unprofiled_step"]["mean_ns"] = USUAL * 1_000
    assert not case_of((), count=3, capture=bursts).lacks_slow_steps


def noted(period: int, start_ns: int = 600_000, wait_ns: int = 600_000) -> dict[str, Any]:
    """The same with starts that the capture noted in the last step of each epoch."""
    steps = range(period - 1, 4 * period, period)
    rows = [{"step": step, "workers": 3, "start_ns": start_ns, "wait_ns": wait_ns} for step in steps]
    return {**timed(period), "loader_starts": rows}


def test_starts_around_the_window_are_promised_though_none_was_recorded() -> None:
    case = case_of((), capture=noted(6))
    found = found_in(case)
    (first, mine), *_ = found.items()
    assert first == "input-bound"
    # 467 µs on average and 200 between starts; at worst the whole wait for the first batch of each stays.
    assert mine.speedup.low == pytest.approx(467 / 300, rel=0.1)
    assert mine.speedup.high == pytest.approx(467 / 200, rel=0.1)
    assert "starts 3 worker processes again in one of 6 steps, which takes 1.80 ms" in mine.detail
    assert "step-outliers" not in found
    assert case.basis_ns == pytest.approx(USUAL * 1_000, rel=1e-3)


def test_starts_that_take_little_of_the_slow_steps_are_not_their_cause() -> None:
    found = found_in(case_of((), capture=noted(6, start_ns=200_000, wait_ns=200_000)))
    assert "input-bound" not in found
    assert "step-outliers" in found
