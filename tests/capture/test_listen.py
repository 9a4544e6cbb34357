"""Recording from a job that runs: `listen` on one side, `stepscope capture` on the other."""

from __future__ import annotations

import errno
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from stepscope.capture.process import active
from stepscope.capture.remote import ask, sockets
from stepscope.capture.remote.listen import Listener
from stepscope.capture.remote.orders import Order
from tests.capture.running import JOBS, PATIENCE_SECONDS, environment, needs, sidecars, traces
from tests.patience import tries
from tests.short import short_folder


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Sockets of each of these tests lie apart from all others, under a short name."""
    with short_folder() as folder:
        monkeypatch.setenv("STEPSCOPE_SOCKETS", str(folder))
        yield tmp_path


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Nobody named a folder: a place of this user's is looked for, and here it is an empty one."""
    with short_folder() as folder:
        monkeypatch.delenv("STEPSCOPE_SOCKETS")
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
        yield folder


@contextmanager
def job(place: Path, kind: str, **added: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A job that listens, and its address."""
    process = subprocess.Popen(
        [sys.executable, str(JOBS / "listening.py"), kind, str(PATIENCE_SECONDS)],
        env=environment(**added),
        cwd=place,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().strip())
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def capture(place: Path, *words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "stepscope", "capture", *map(str, words)],
        env=environment(),
        cwd=place,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )


def check(folder: Path, steps: int) -> dict[str, Any]:
    (note,) = sidecars(folder)
    assert len(note["steps"]["inside"]["durations_ns"]) == steps
    assert note["steps"]["inside"]["first"] > 5
    assert len(note["steps"]["before"]["durations_ns"]) == 1
    return note


def test_by_process_and_again(place: Path) -> None:
    with job(place, "plain") as (process, path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        listed = capture(place)
        assert str(process.pid) in listed.stdout
        assert "listening.py plain" in listed.stdout
        ended = capture(place, process.pid, "--steps", 3, "-o", "out")
        assert ended.returncode == 0, ended.stderr
        assert "Next: stepscope report out" in ended.stderr
        check(place / "out", 3)
        capture(place, path, "--steps", 2, "-o", "again")
        check(place / "again", 2)
        assert process.poll() is None


def test_several_at_once(place: Path) -> None:
    with job(place, "plain") as (first, _), job(place, "plain") as (second, _):
        ended = capture(place, first.pid, second.pid, "--steps", 2, "-o", "out")
        assert ended.returncode == 0, ended.stderr
        assert len(traces(place / "out")) == 2


def test_beside_a_profiler_of_the_job(place: Path) -> None:
    with job(place, "own_profiler") as (process, _):
        ended = capture(place, process.pid, "--steps", 3, "-o", "out")
        assert ended.returncode == 0, ended.stderr
        check(place / "out", 3)
        assert len(traces(place / "own")) == 1


@needs("torch")
def test_torch_without_marks(place: Path) -> None:
    """The loop began before listen()."""
    with job(place, "torch") as (process, _):
        ended = capture(place, process.pid, "--steps", 3, "-o", "out")
        assert ended.returncode == 0, ended.stderr
        assert check(place / "out", 3)["backend"] == "torch"


def test_by_the_environment(place: Path) -> None:
    script = "import stepscope, time\nwhile True:\n    time.sleep(0.005)\n    stepscope.step()"
    process = subprocess.Popen([sys.executable, "-c", script], env=environment(STEPSCOPE_LISTEN="1"))
    try:
        assert any(ask.listening() for _ in tries())
        capture(place, process.pid, "--steps", 2, "-o", "out")
        assert len(traces(place / "out")) == 1
    finally:
        process.kill()
        process.wait()


def test_a_loop_that_makes_no_steps(place: Path) -> None:
    script = f"import stepscope, time; print(stepscope.listen(), flush=True); time.sleep({PATIENCE_SECONDS})"
    process = subprocess.Popen(
        [sys.executable, "-c", script], env=environment(), stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        ended = capture(place, process.pid, "--timeout", 1)
        assert ended.returncode == 1
        assert "call stepscope.step() at the end" in ended.stderr
        ended = capture(place, process.pid, "--timeout", 1)
        assert "someone else" not in ended.stderr
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def test_whoever_has_hung_up_keeps_nobody_waiting(place: Path) -> None:
    """Also before the thread that serves them has noticed."""
    here, there = socket.socketpair()
    other, end = socket.socketpair()
    with here, there, other, end:
        listener = Listener()
        assert listener._take(Order("out", 1), here)
        assert not listener._take(Order("out", 1), other)
        there.close()
        assert listener._take(Order("out", 1), other)
        listener._order, active.on_step = None, None


def test_a_job_that_ends_meanwhile(place: Path) -> None:
    command = [sys.executable, "-m", "stepscope", "capture", "--steps", "10000", "-o", "out"]
    with job(place, "slow") as (process, _):
        asked = subprocess.Popen(
            [*command, str(process.pid)], env=environment(), cwd=place, stderr=subprocess.PIPE, text=True
        )
        assert asked.stderr is not None
        assert "recording steps" in asked.stderr.readline()
        process.kill()
        _, said = asked.communicate(timeout=PATIENCE_SECONDS)
    assert asked.returncode == 1
    assert "exited or stopped listening before the steps were recorded" in said


def test_a_job_that_hangs(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask, "_PATIENCE_SECONDS", 0.2)
    with job(place, "plain") as (process, path):
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)  # until it has stopped
        with pytest.raises(ask.NotListening, match="does not answer"):
            ask.status(path)


def test_nobody_listens(place: Path) -> None:
    ended = capture(place, os.getpid())
    assert ended.returncode == 1
    assert "does not listen" in ended.stderr
    assert "STEPSCOPE_LISTEN=1" in ended.stderr
    assert "No process is listening" in capture(place).stderr


def test_a_socket_that_was_left_behind(place: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    folder = sockets.own_folder()
    left = folder / f"{dead.pid}.sock"
    sockets.opened(left).close()
    assert ask.listening() == []
    assert not left.exists()


def test_the_folder_of_the_user(runtime: Path) -> None:
    assert sockets.own_folder() == runtime / "stepscope"
    assert sockets.is_ours(runtime / "stepscope")


def test_folders_of_others_are_not_used(runtime: Path) -> None:
    folder = sockets.folders()[0]
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    assert not sockets.is_ours(folder)
    assert sockets.own_folder() != folder


def test_a_named_folder_is_the_only_one(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_to_all = place / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    monkeypatch.setenv("STEPSCOPE_SOCKETS", str(open_to_all))
    assert sockets.folders() == [open_to_all]
    with pytest.raises(sockets.NotOurs, match="others may use it"):
        sockets.own_folder()
    monkeypatch.setenv("STEPSCOPE_SOCKETS", str(place / "new"))
    assert sockets.is_ours(sockets.own_folder())


def test_names_too_long_for_a_socket(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = runtime / ("d" * 90)
    deep.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    assert all("ddd" not in str(folder) for folder in sockets.folders())
    assert sockets.own_folder().is_dir()


def test_nonsense_is_survived(place: Path) -> None:
    with job(place, "plain") as (process, path):
        for words in (
            b"\xff\xfe\n",
            b"[]\n{}\n",
            b'{"verb": "capture"}\n',
            b'{"verb": "capture", "steps": "x"}\n',
            b"x" * 99,
        ):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(path))
                connection.sendall(words)
        assert ask.status(path)["pid"] == process.pid


class _Fault(Exception):
    """Injected."""


@pytest.fixture
def listener(place: Path) -> Iterator[Listener]:
    """One that listens in this process; nothing is left of it."""
    made = Listener()
    assert made.open() is not None
    own = made._socket
    assert own is not None
    yield made
    made.close()
    own.shutdown(socket.SHUT_RDWR)  # ends the thread, which waits for callers
    own.close()


def answer_to(listener: Listener, **request: Any) -> dict[str, Any]:
    """The last thing that it says."""
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(str(listener._path))
        sockets.send(caller, **request)
        caller.shutdown(socket.SHUT_WR)
        return list(sockets.lines(caller))[-1]


@pytest.mark.parametrize("where", ["_status", "_capture", "_carry_out", "accept", "close"])
def test_a_fault_in_here_does_not_reach_the_job(
    listener: Listener, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], where: str
) -> None:
    """It is told to whoever asks next."""

    def fail(*_: object) -> None:
        raise _Fault("of ours")

    with monkeypatch.context() as broken:
        if where == "_status" or where == "_capture":
            broken.setattr(Listener, where, fail)
            answer = answer_to(listener, verb="capture" if where == "_capture" else "status")
            assert answer == {"state": "refused", "why": "it failed: _Fault: of ours"}
        elif where == "_carry_out":
            broken.setattr(Listener, where, fail)
            listener._step(3)
        elif where == "accept":
            own, errors = listener._socket, iter([OSError(errno.EMFILE, "Too many open files")])

            class Refusing:
                def accept(self) -> Any:
                    for error in errors:
                        raise error
                    listener._socket = own
                    raise OSError(errno.EBADF, "closed")

            listener._socket = Refusing()  # type: ignore[assignment]
            listener._accept()
        else:
            broken.setattr(Path, "unlink", fail)
            listener.close()
    assert listener._status()["faults"] != []
    assert capfd.readouterr().err == ""


def test_a_request_without_a_folder_is_refused(listener: Listener, capfd: pytest.CaptureFixture[str]) -> None:
    answer = answer_to(listener, verb="capture")
    assert answer["state"] == "refused" and "KeyError" in answer["why"]
    assert capfd.readouterr().err == ""
