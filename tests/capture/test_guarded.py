"""Faults in threads of our own: nothing of them reaches the job's stderr."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import stepscope
from stepscope.capture.machine import telemetry
from stepscope.capture.process import guarded, host_spans
from stepscope.capture.process.guarded import guarded_thread, taken_faults


class Fault(BaseException):
    """Not even an Exception."""


def raising() -> None:
    raise Fault("of ours")


def test_a_fault_is_kept_and_not_printed(capfd: pytest.CaptureFixture[str]) -> None:
    taken_faults()
    thread = guarded_thread(raising, "stepscope-test")
    assert thread is not None
    thread.join()
    assert [(name, str(error)) for name, error in taken_faults()] == [("stepscope-test", "of ours")]
    assert taken_faults() == []
    assert capfd.readouterr().err == ""


def test_whoever_keeps_faults_may_fail_too(capfd: pytest.CaptureFixture[str]) -> None:
    def failing(_: BaseException) -> None:
        raise Fault("again")

    thread = guarded_thread(raising, "stepscope-test", failing)
    assert thread is not None
    thread.join()
    assert capfd.readouterr().err == ""


def test_a_process_without_room_for_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", full)
    assert guarded_thread(raising, "stepscope-test") is None


def test_faults_are_bounded() -> None:
    for _ in range(3 * guarded._MOST_FAULTS):
        thread = guarded_thread(raising, "stepscope-test")
        assert thread is not None
        thread.join()
    assert len(taken_faults()) == guarded._MOST_FAULTS


@pytest.mark.parametrize("thread", ["stepscope-telemetry", "stepscope-sampler"])
def test_what_looks_may_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], thread: str
) -> None:
    """The profile is written, and its sidecar says what is missing."""
    failed = threading.Event()

    def fail(_: object) -> None:
        failed.set()
        raise Fault("of ours")

    kind = telemetry.Telemetry if thread == "stepscope-telemetry" else host_spans.Sampler
    monkeypatch.setattr(kind, "_run", fail)
    with stepscope.profile(tmp_path, backends=("host",)) as prof:
        assert failed.wait(60)
        for each in [each for each in threading.enumerate() if each.name == thread]:
            each.join()
        prof.step()
    assert len(prof.files) == 1
    assert [row["title"] for row in prof.problems] == [f"The thread {thread} failed"]
    assert capfd.readouterr().err == ""
