"""A run is slower than the one before only by more than its noise."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.gate.trend import StepNoise, compare_steps, measure_steps
from stepscope.reports.model.report import Profile, Report, StepRow, Steps

MS = 1_000_000


def _report(durations: Sequence[float], source: str = "marker") -> Report:
    rows = [
        StepRow(
            rank=0,
            device=0,
            step=at,
            start_ns=0,
            duration_ns=round(ms * MS),
            parts={"compute": round(ms * MS)},
        )
        for at, ms in enumerate(durations)
    ]
    steps = Steps(source=source, count=len(rows), critical_devices={"0": 0}, rows=rows)
    return Report(profile=Profile(path="x"), steps=steps)


def _noise(*durations: float) -> StepNoise:
    found = measure_steps(_report(durations))
    assert found is not None
    return found


def test_a_steady_job_that_got_twice_as_slow_is_slower() -> None:
    before, after = _noise(10.0, 10.1, 9.9, 10.0, 10.0), _noise(20.0, 20.1, 19.9, 20.0, 20.0)
    found = compare_steps(before, after)
    assert found.verdict == "slower"
    assert abs(found.difference_ns - 10 * MS) < 1e3
    assert compare_steps(after, before).verdict == "faster"


def test_what_is_within_noise_is_the_same() -> None:
    steady = _noise(10.0, 10.1, 9.9, 10.0, 10.0)
    assert compare_steps(steady, _noise(10.1, 10.2, 10.0, 10.1, 10.1)).verdict == "same"
    wild = _noise(5.0, 15.0, 9.0, 11.0, 12.0)
    found = compare_steps(wild, _noise(7.0, 17.0, 11.0, 13.0, 14.0))
    assert found.verdict == "same" and found.margin_ns > found.difference_ns


def test_without_steps_or_with_a_single_one_nothing_is_judged() -> None:
    assert measure_steps(_report([10.0])) is None
    assert measure_steps(_report([10.0, 11.0], source="whole")) is None
    assert measure_steps(_report([])) is None
