"""Runs of unprofiled steps: where they begin and end, what is waited for, and what comes of them."""

from __future__ import annotations

import gc
import time
from pathlib import Path
from typing import Any

import pytest

import stepscope
from stepscope.capture import unprofiled
from stepscope.capture.unprofiled import SKIPPED, STEPS, UnprofiledRuns
from tests.capture.running import sidecars


class Loop:
    """A host that queues steps of `host_ns` for a device that takes `device_ns` for each, with room for `room` of them."""

    def __init__(self, host_ns: int, device_ns: int, room: int = 4) -> None:
        self.host_ns, self.device_ns, self.room = host_ns, device_ns, room
        self.now = self.free_at = 0
        self.moments: list[int] = []
        self.waits = 0
        self.runs = UnprofiledRuns(self.wait)

    def wait(self) -> bool:
        self.waits += 1
        self.now = max(self.now, self.free_at)
        return True

    def steps(self, first: int, last: int) -> None:
        for number in range(first, last):
            self.runs.reach(number, self.moments, lambda: self.now)
            self.now = max(self.now + self.host_ns, self.free_at - self.room * self.device_ns)
            self.free_at = max(self.free_at, self.now) + self.device_ns
            self.moments.append(self.now)
        self.runs.reach(last, self.moments, lambda: self.now)


@pytest.mark.parametrize(("host", "device", "step"), [(1_000, 10_000, 10_000), (10_000, 1_000, 10_000)])
def test_the_mean_is_that_of_whichever_is_slower(host: int, device: int, step: int) -> None:
    loop = Loop(host, device)
    loop.runs.plan_before(0, 40)
    loop.steps(0, 40)
    assert loop.runs.before is not None
    assert loop.runs.before["count"] == STEPS
    assert loop.runs.before["first"] == 20
    assert loop.runs.before["mean_ns"] == pytest.approx(step, rel=0.06)
    assert loop.runs.before["low_ns"] <= loop.runs.before["mean_ns"] <= loop.runs.before["high_ns"]
    assert loop.waits == 2  # at both ends, and never inside


def test_the_hosts_own_time_is_that_until_the_queue_is_full() -> None:
    loop = Loop(1_000, 10_000)
    loop.runs.plan_before(0, 40)
    loop.steps(0, 40)
    assert loop.runs.before is not None
    own = loop.runs.before["host_durations_ns"]
    assert 4 <= len(own) <= 6
    assert set(own) == {1_000}


def test_full_collections_of_garbage_are_counted() -> None:
    counts = []
    for collects in (False, True):
        loop = Loop(1_000, 10_000)
        loop.runs.plan_before(0, 40)
        loop.steps(0, 30)
        for _ in range(3 * collects):
            gc.collect()
        loop.steps(30, 40)
        assert loop.runs.before is not None
        counts.append(loop.runs.before["full_collections"])
    assert counts[1] - counts[0] == pytest.approx(3, abs=1)  # one may come by itself


def test_without_room_the_run_is_shorter_and_never_holds_the_first_steps() -> None:
    loop = Loop(1_000, 10_000)
    loop.runs.plan_before(0, 8)
    loop.steps(0, 8)
    assert loop.runs.before is not None
    assert (loop.runs.before["first"], loop.runs.before["count"]) == (SKIPPED, 5)
    loop = Loop(1_000, 10_000)
    loop.runs.plan_before(0, SKIPPED + 1)
    loop.steps(0, SKIPPED + 1)
    assert (loop.runs.before, loop.waits) == (None, 0)


@pytest.mark.parametrize(("workers", "count"), [(1, 20), (3, 21), (8, 24), (50, 50), (33, 33)])
def test_a_run_holds_a_multiple_of_the_workers(
    monkeypatch: pytest.MonkeyPatch, workers: int, count: int
) -> None:
    monkeypatch.setattr(unprofiled, "workers_in_use", lambda: workers)
    loop = Loop(1_000, 500)
    loop.runs.plan_before(0, 100)
    loop.steps(0, 100)
    assert loop.runs.before is not None
    assert (loop.runs.before["count"], loop.runs.before["workers"]) == (count, workers)


def test_batches_in_bursts_do_not_widen_the_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unprofiled, "workers_in_use", lambda: 2)
    loop = Loop(0, 1)
    loop.runs.plan_before(0, 40)
    for number in range(41):
        loop.runs.reach(number, loop.moments, lambda: loop.now)
        loop.now += 141_000 if number % 2 else 23_000
        loop.moments.append(loop.now)
    assert loop.runs.before is not None
    assert loop.runs.before["mean_ns"] == 82_000
    assert loop.runs.before["high_ns"] < 1.1 * 82_000


def test_the_run_after_a_window_ends_where_the_next_one_begins() -> None:
    loop = Loop(10_000, 1_000)
    loop.runs.plan_after(100, 110)
    loop.steps(100, 110)
    assert loop.runs.after is not None
    assert (loop.runs.after["first"], loop.runs.after["count"]) == (103, 7)
    loop.runs.forget()
    assert loop.runs.before is not None and loop.runs.after is None


def test_a_wait_that_failed_is_noted() -> None:
    loop = Loop(10_000, 1_000)
    loop.wait = lambda: False  # type: ignore[method-assign]
    loop.runs = UnprofiledRuns(loop.wait)
    loop.runs.plan_before(0, 30)
    loop.steps(0, 30)
    assert loop.runs.before is not None and loop.runs.before["synchronised"] is False


def _record(folder: Path, steps: int, **options: Any) -> list[dict[str, Any]]:
    plan = stepscope.schedule(**({"skip": 25, "warmup": 2, "active": 3} | options))
    prof = stepscope.Profiler(folder, schedule=plan, backends=("host",), stacks=False, telemetry=False)
    with prof:
        for _ in range(steps):
            time.sleep(0.001)
            prof.step()
    return sidecars(folder)


def test_the_sidecar_has_both_runs(tmp_path: Path) -> None:
    (note,) = _record(tmp_path, 60)
    before, after = note["unprofiled"]["before"], note["unprofiled"]["after"]
    assert (before["first"], before["count"]) == (5, 20)
    assert (after["first"], after["count"]) == (33, 20)
    inside = note["steps"]["before"]["durations_ns"][before["first"] : before["first"] + before["count"]]
    # The first step may begin before the run does, which waits first; the others are inside it.
    assert before["total_ns"] >= 0.99 * sum(inside[1:])
    assert before["mean_ns"] == pytest.approx(before["total_ns"] / before["count"], abs=1)
    assert before["synchronised"] and before["workers"] == 1


def test_every_window_has_runs_of_its_own(tmp_path: Path) -> None:
    notes = sorted(_record(tmp_path, 200, repeat=3, skip=45), key=lambda note: note["window"])
    runs = [note["unprofiled"] for note in notes]
    assert [run["before"]["first"] for run in runs] == [25, 75, 125]
    assert [run["after"]["first"] for run in runs] == [53, 103, 153]
    assert all(run[side]["count"] == 20 for run in runs for side in ("before", "after"))


def test_a_job_that_ends_early_keeps_what_there_is(tmp_path: Path) -> None:
    (note,) = _record(tmp_path, 30 + SKIPPED + 6)
    assert note["unprofiled"]["after"]["count"] == 6


def test_the_report_is_about_the_unprofiled_step(tmp_path: Path) -> None:
    (note,) = _record(tmp_path, 60)
    report = stepscope.report(tmp_path)
    known = report.steps.unprofiled
    assert known is not None
    assert (report.steps.basis, report.steps.basis_ns) == ("unprofiled", known.mean_ns)
    assert known.low_ns <= note["unprofiled"]["before"]["mean_ns"] <= known.high_ns
    for text in (str(report), report._repr_html_()):
        assert report.steps.sentence in " ".join(text.split())
    assert "without the profiler" in report.steps.sentence


def test_where_it_was_not_timed_the_recorded_step_is_used_and_that_is_said_once(tmp_path: Path) -> None:
    _record(tmp_path, 12, skip=2, warmup=0)
    report = stepscope.report(tmp_path)
    assert (report.steps.basis, report.steps.unprofiled) == ("recorded", None)
    assert report.steps.basis_ns == report.steps.mean_ns
    assert " ".join(str(report).split()).count("not timed without the profiler") == 1
