"""The Profiler itself, over the collector that needs no framework."""

from __future__ import annotations

import json
import sys
import threading
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import stepscope
from stepscope.capture.backends import detect, out_of_memory
from stepscope.capture.backends.host import HostBackend
from stepscope.capture.files.writer import Recorded
from stepscope.capture.process import active
from stepscope.capture.process.troubles import CaptureWarning, Troubles, explain
from tests.patience import tries

HOST: dict[str, Any] = {"backends": ("host",), "telemetry": False, "stacks": False}


def record(folder: Path, steps: int = 6, **options: Any) -> stepscope.Profiler:
    with stepscope.Profiler(folder, **HOST | options) as prof:
        for _ in range(steps):
            with stepscope.annotate("part"):
                pass
            prof.step()
    return prof


def test_every_cycle_of_a_schedule_is_a_window(tmp_path: Path) -> None:
    prof = record(tmp_path, 12, schedule=stepscope.schedule(skip=1, warmup=1, active=2, repeat=3))
    notes = [json.loads(path.read_text()) for path in sorted(tmp_path.glob("*.stepscope.json"))]
    assert len(prof.files) == 3
    assert [note["window"] for note in notes] == [0, 1, 2]
    assert [note["steps"]["inside"]["first"] for note in notes] == [2, 6, 10]
    assert [stepscope.report(path, sections=("steps",)).steps.count for path in prof.files] == [2, 2, 2]


def test_memory_is_looked_at_between_windows_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []

    def look(number: int) -> int:
        looked.append(number)
        return number + 1

    monkeypatch.setattr(out_of_memory.watch, "look", look)
    record(tmp_path, 10, schedule=stepscope.schedule(skip=3, warmup=1, active=3))
    assert looked[0] == 0 and {1, 2, 8, 9} <= set(looked)
    assert not {4, 5, 6} & set(looked)
    looked.clear()
    record(tmp_path, 3, memory=False)
    assert looked == []


def test_windows_that_touch(tmp_path: Path) -> None:
    prof = record(tmp_path, 6, schedule=stepscope.schedule(active=2, repeat=0))
    assert len(prof.files) == 3


def test_a_window_that_never_came(tmp_path: Path) -> None:
    prof = record(tmp_path, 3, schedule=stepscope.schedule(skip=10))
    assert (prof.files, prof.problems) == ([], [])
    assert list(tmp_path.iterdir()) == []


def test_stopped_while_warming_up(tmp_path: Path) -> None:
    prof = record(tmp_path, 3, schedule=stepscope.schedule(skip=1, warmup=5))
    assert prof.files == []
    assert list(tmp_path.iterdir()) == []


def test_warmup_by_hand(tmp_path: Path) -> None:
    prof = stepscope.Profiler(tmp_path, **HOST)
    prof.warmup()
    prof.start()
    prof.step()
    prof.stop()
    assert len(prof.files) == 1
    again = stepscope.Profiler(tmp_path / "other", **HOST)
    again.warmup()
    again.stop()
    assert list((tmp_path / "other").iterdir()) == []


def test_as_a_decorator_each_call_is_recorded(tmp_path: Path) -> None:
    @stepscope.profile(tmp_path, **HOST)
    def job(answer: int) -> int:
        stepscope.step()
        return answer

    assert (job(1), job(2)) == (1, 2)
    assert len(list(tmp_path.glob("*.trace.json"))) == 2


def test_steps_after_the_window_reach_the_sidecar_in_a_long_run(tmp_path: Path) -> None:
    prof = stepscope.Profiler(tmp_path, schedule=stepscope.schedule(skip=2, active=2), **HOST)
    prof.start()
    for _ in range(200):
        prof.step()
    note = json.loads(next(tmp_path.glob("*.stepscope.json")).read_text())
    assert len(note["steps"]["after"]["durations_ns"]) == 64
    prof.stop()


def test_a_collector_that_fails_costs_one_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES")

    for method in ("start", "begin_step", "stop", "save"):
        with monkeypatch.context() as patch:
            patch.setattr(HostBackend, method, broken)
            with pytest.warns(CaptureWarning, match="The GPU could not be traced") as told:
                prof = record(tmp_path / method)
            assert len(told) == 1
            assert prof.files == []
            assert [problem["code"] for problem in prof.problems] == ["cupti-failed"]


def test_a_failure_leaves_its_reason_beside_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(HostBackend, "save", broken)
    with pytest.warns(CaptureWarning):
        record(tmp_path)
    note = json.loads(next(tmp_path.glob("*.stepscope.json")).read_text())
    assert (note["file"], note["problems"][0]["code"]) == (None, "capture-failed")


def test_frames_that_could_not_be_added_are_a_problem_of_the_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = HostBackend.save

    def without_frames(backend: HostBackend) -> list[Recorded]:
        first, *others = save(backend)
        return [replace(first, no_frames="the file is too large"), *others]

    monkeypatch.setattr(HostBackend, "save", without_frames)
    prof = record(tmp_path)
    assert [each["code"] for each in prof.problems] == ["frames-left-out"]
    found = {each.code: each.detail for each in stepscope.report(prof.files[0]).problems}
    assert found["frames-left-out"] == "host: the file is too large."


def test_warnings_that_are_errors_do_not_reach_the_loop(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prof = record(tmp_path / "file")
    assert prof.files == []
    assert "stepscope: " in capsys.readouterr().err


def test_nothing_to_report(tmp_path: Path) -> None:
    prof = stepscope.Profiler(tmp_path, **HOST)
    with pytest.warns(CaptureWarning, match="Nothing was recorded"):
        assert prof.report() is None


def test_started_in_another_thread(tmp_path: Path) -> None:
    thread = threading.Thread(target=record, args=(tmp_path,))
    thread.start()
    thread.join()
    assert len(list(tmp_path.glob("*.trace.json"))) == 1


def test_an_unknown_backend_is_told(tmp_path: Path) -> None:
    with pytest.warns(CaptureWarning, match="no backend 'mxnet'"):
        prof = stepscope.Profiler(tmp_path, backends=("mxnet",))
        prof.start()
        prof.stop()
    assert prof.files == []


def test_input_is_the_loader(tmp_path: Path) -> None:
    class Loader(list[int]):
        batch_size = 8

    prof = stepscope.Profiler(tmp_path, **HOST)
    loader = prof.input(Loader([1, 2, 3]))
    assert (len(loader), loader.batch_size, list(loader)) == (3, 8, [1, 2, 3])
    with prof:
        assert list(loader) == [1, 2, 3]
        prof.step()
    note = json.loads(next(tmp_path.glob("*.stepscope.json")).read_text())
    assert note["input"]["batches"] == 3


def test_an_error_of_the_loader_is_the_loops(tmp_path: Path) -> None:
    def loader() -> Any:
        yield 1
        raise KeyError("of the loader")

    with pytest.raises(KeyError, match="of the loader"), stepscope.Profiler(tmp_path, **HOST) as prof:
        for _ in prof.input(loader()):
            prof.step()
    assert len(prof.files) == 1


def test_annotations_as_decorators_and_twice(tmp_path: Path) -> None:
    part = stepscope.annotate("part")

    @stepscope.annotate("whole")
    def whole(value: int) -> int:
        with part:
            pass
        with part:
            return value

    with stepscope.Profiler(tmp_path, **HOST) as prof:
        assert whole(5) == 5
        prof.step()
    assert {name: row["calls"] for name, row in prof.phases.items()} == {"whole": 1, "part": 2}
    assert "whole" in prof.summary()


def test_nothing_stays_behind(tmp_path: Path) -> None:
    record(tmp_path)
    assert (active.profiler, active.is_timing) == (None, False)
    assert any(not threads_of_ours() for _ in tries())


def threads_of_ours() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("stepscope")]


def test_without_a_framework_the_host_records(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch", "tensorflow", "jax"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert detect() == ("host",)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(28, "No space left on device"), "disk-full"),
        (PermissionError(13, "Permission denied"), "folder-unwritable"),
        (RuntimeError("Only one profile may be run at a time."), "second-profiler"),
        (ValueError("other"), "capture-failed"),
    ],
)
def test_errors_in_words(error: Exception, code: str) -> None:
    assert explain("Writing", error).code == code


def test_the_same_problem_is_told_once() -> None:
    troubles = Troubles()
    with pytest.warns(CaptureWarning) as told:
        for _ in range(3):
            troubles.failed("Writing", ValueError("x"))
    assert len(told) == len(troubles.rows()) == 1
