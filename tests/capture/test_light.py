"""The light window: which steps it takes, what it leaves, and that nothing it does reaches the job or another window."""

from __future__ import annotations

import gzip
import time
from pathlib import Path
from typing import Any

import pytest

import stepscope
from stepscope.capture import backends, profiler
from stepscope.capture.backends.base import Options
from stepscope.capture.files.writer import LIGHT, Recorded
from stepscope.capture.light import MOST_STEPS, NO_GPU, NO_ROOM, TURNED_OFF, WITH_REGIONS, LightSteps
from stepscope.capture.process.step_times import StepTimes
from stepscope.capture.schedule import NEVER, schedule
from tests.capture.running import sidecars

HOST: dict[str, Any] = {"backends": ("host",), "telemetry": False, "stacks": False}


class Fake:
    """A collector that notes what it is asked for, and fails where it is told to."""

    name = "host"
    in_run_folder = False

    def __init__(self, fails_in: str = "") -> None:
        self.calls: list[str] = []
        self.fails_in = fails_in
        self.folder = Path()

    def _called(self, what: str) -> None:
        self.calls.append(what)
        if what == self.fails_in:
            raise RuntimeError("no such luck")

    def warm_up(self, folder: Path) -> None:
        self.folder = folder
        self._called("warm_up")

    def start(self, folder: Path) -> None:
        self._called("start")

    def stop(self) -> None:
        self._called("stop")

    def save(self) -> list[Recorded]:
        self._called("save")
        path = self.folder / "trace.pt.trace.json.gz"
        path.write_bytes(gzip.compress(b'{"traceEvents": []}'))
        return [Recorded(path, ".pt.trace.json.gz")]

    def abandon(self) -> None:
        self._called("abandon")


@pytest.fixture
def light(monkeypatch: pytest.MonkeyPatch) -> list[Fake]:
    """The collectors of light windows that were made; a first one there decides how they fail."""
    made: list[Fake] = []

    def make(_names: object, _options: Options) -> Any:
        made.append(Fake(made[0].fails_in if made else ""))
        return made[-1]

    monkeypatch.setattr(backends, "make_light", make)
    monkeypatch.setattr(profiler, "light_of", lambda _names: "host")
    return made


def record(folder: Path, steps: int = 60, **options: Any) -> list[dict[str, Any]]:
    plan = stepscope.schedule(**({"skip": 25, "warmup": 2, "active": 3} | options.pop("plan", {})))
    with stepscope.Profiler(folder, schedule=plan, **HOST | options) as prof:
        for _ in range(steps):
            time.sleep(0.0005)
            prof.step()
    return sorted(sidecars(folder), key=lambda note: note["window"])


def points(skip: int, active: int = 5, number: int = 0, **options: Any) -> list[tuple[int, str]]:
    """All that is to be done for the light window, and when."""
    steps = LightSteps(is_wanted=True)
    steps.plan(number, schedule(skip=skip, warmup=2, active=active), has_regions=False, **options)
    found = []
    while steps.next_point < NEVER:
        at = steps.next_point
        point = steps.reach(at)
        found.append((at, str(point)))
        if point == "decide":
            steps.take_steps()
    return found


def test_it_lies_right_before_the_window_and_leaves_room_for_the_unprofiled_run() -> None:
    assert points(40) == [(2, "decide"), (34, "warmup"), (35, "start"), (40, "end")]
    assert points(100, active=50)[-2:] == [(100 - MOST_STEPS, "start"), (100, "end")]
    assert points(8) == [(2, "decide"), (5, "warmup"), (6, "start"), (8, "end")]


def test_without_room_there_is_none() -> None:
    assert points(6) == points(0) == []
    steps = LightSteps(is_wanted=True)
    steps.plan(0, schedule(skip=6), has_regions=False)
    assert steps.reason == NO_ROOM


def test_the_file_and_the_moments_of_its_steps(tmp_path: Path, light: list[Fake]) -> None:
    (note,) = record(tmp_path)
    assert light[0].calls == ["warm_up", "start", "stop", "save"]
    found = note["light"]
    assert (found["first"], len(found["moments_ns"]), found["reason"]) == (22, 3 + 1, None)
    assert found["file"] == note["file"].partition(".trace.json")[0] + LIGHT
    assert (tmp_path / found["file"]).is_file()
    clock, moments = found["clock"], found["moments_ns"]
    assert clock["start"]["perf_counter_ns"] <= moments[0] < moments[-1] <= clock["end"]["perf_counter_ns"]


def test_the_window_and_the_unprofiled_run_have_none_of_its_steps(tmp_path: Path, light: list[Fake]) -> None:
    (note,) = record(tmp_path)
    run = note["unprofiled"]["before"]
    assert (run["first"], run["count"]) == (3, 18)  # the collector gets ready in step 21
    before = note["steps"]["before"]
    assert before["first"] + len(before["durations_ns"]) == 21
    assert note["steps"]["warmup"]["first"] == 25
    assert (note["steps"]["inside"]["first"], len(note["steps"]["inside"]["durations_ns"])) == (27, 3)


def test_every_window_has_one(tmp_path: Path, light: list[Fake]) -> None:
    notes = record(tmp_path, 200, plan={"repeat": 3, "skip": 45})
    assert [note["light"]["first"] for note in notes] == [42, 92, 142]
    assert [note["unprofiled"]["after"]["first"] for note in notes] == [53, 103, 153]
    assert all(note["unprofiled"][side]["count"] >= 15 for note in notes for side in ("before", "after"))


@pytest.mark.parametrize("place", ["warm_up", "start", "stop", "save"])
def test_one_that_fails_costs_nothing_else(tmp_path: Path, light: list[Fake], place: str) -> None:
    light.append(Fake(place))
    (note,) = record(tmp_path)
    assert "no such luck" in note["light"]["reason"]
    assert (note["light"]["file"], note["problems"]) == (None, [])
    assert light[-1].calls[-1] == "abandon"
    assert stepscope.report(tmp_path, sections=("steps",)).steps.count == 3
    assert not list(tmp_path.glob(f"*{LIGHT}"))


def test_a_job_that_ends_inside_it_leaves_nothing(tmp_path: Path, light: list[Fake]) -> None:
    assert record(tmp_path, 23) == []
    assert light[0].calls == ["warm_up", "start", "abandon"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"light": False}, TURNED_OFF),
        ({"regions": True}, WITH_REGIONS),
        ({"plan": {"skip": 0}}, NO_ROOM),
    ],
)
def test_where_there_is_none_the_sidecar_says_why(
    tmp_path: Path, light: list[Fake], options: dict[str, Any], reason: str
) -> None:
    (note,) = record(tmp_path, **options)
    assert note["light"] == {"file": None, "reason": reason}
    assert light == []


def test_without_a_gpu_the_unprofiled_run_has_all_steps(tmp_path: Path) -> None:
    (note,) = record(tmp_path)
    assert note["light"] == {"file": None, "reason": NO_GPU}
    assert (note["unprofiled"]["before"]["first"], note["unprofiled"]["before"]["count"]) == (5, 20)


def test_retention_takes_it_along(tmp_path: Path, light: list[Fake]) -> None:
    record(tmp_path, 200, plan={"repeat": 3, "skip": 45}, keep=1)
    assert len(list(tmp_path.glob(f"*{LIGHT}"))) == len(list(tmp_path.glob("*.trace.json"))) == 1


def test_nobody_takes_it_for_a_second_trace(tmp_path: Path, light: list[Fake]) -> None:
    record(tmp_path)
    profile = stepscope.load(tmp_path)
    assert (len(profile.traces), profile.other_runs, profile.skipped) == (1, [], [])
    endings = (".json", ".gz", ".pb")  # what TensorBoard's plugins, XProf and HTA look for
    traces = [path.name for path in tmp_path.iterdir() if path.name.endswith(endings)]
    assert len([name for name in traces if not name.endswith(".stepscope.json")]) == 1


def test_step_times_end_before_it() -> None:
    times = StepTimes(0)
    times.recent.extend((10, 20))
    times.cut_before(2, 25)
    times.recent.append(40)
    times.restart(50)
    times.recent.extend((60, 70))
    assert times.restart(80) == [50, 60, 70]
    times.enter_window(5, 90, was_warmup=False)
    assert times.rows(5)["before"] == {"first": 0, "durations_ns": [10, 10]}
