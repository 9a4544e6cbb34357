"""`stepscope capture --stacks`: where the threads of jobs are that hang, and that nothing of theirs is touched."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from stepscope.capture.command.stacks import describe_group, find_place, group_main, show_stacks, write_stacks
from stepscope.capture.command.talk import PlainTalk
from stepscope.capture.remote import ask, sockets
from stepscope.capture.remote.ask_stacks import ProcessStacks, ThreadStack, ask_all, ask_one, parse_dump
from stepscope.capture.remote.stack_signal import ENDING, StackSignal, choose_signal
from tests.capture.running import JOBS, PATIENCE_SECONDS, environment
from tests.short import short_folder

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="signals are known from /proc")
TORCH = "/venv/lib/python3.11/site-packages/torch/distributed"
REDUCE = (
    ("all_reduce", f"{TORCH}/distributed_c10d.py", 3245),
    ("wrapper", f"{TORCH}/c10d_logger.py", 83),
    ("reduce_gradients", "/job/train.py", 88),
    ("<module>", "/job/train.py", 12),
)
LOAD = (
    (
        "_BaseDataLoaderIter.__next__",
        "/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py",
        733,
    ),
    ("<module>", "/job/train.py", 10),
)


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with short_folder() as folder:
        monkeypatch.setenv("STEPSCOPE_SOCKETS", str(folder))
        yield folder


@contextmanager
def job(way: str, rank: int, own: int = 0) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    process = subprocess.Popen(
        [sys.executable, str(JOBS / "hanging.py"), way, str(own)],
        env=environment(RANK=str(rank)),
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


def process(rank: int, frames: tuple[tuple[str, str, int], ...]) -> ProcessStacks:
    return ProcessStacks(str(100 + rank), rank, (ThreadStack("MainThread", True, frames),), "socket")


def test_equal_stacks_of_all_ranks_are_one(place: Path) -> None:
    with ExitStack() as stack:
        jobs = [stack.enter_context(job(way, rank)) for rank, way in enumerate(("wait", "wait", "spin", "c"))]
        done = subprocess.run(
            [sys.executable, "-m", "stepscope", "capture", "--stacks", "all"],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        assert all(process.poll() is None for process, _ in jobs), "no job ends of it"
    first = done.stdout.splitlines()[0]
    assert re.search(r"anks 0–1 wait in (Event\.)?wait at hanging\.py:\d+", first)
    assert re.search(r"rank 2 is in spin at hanging\.py:\d+", first)
    assert re.search(r"rank 3 is in hang_in_c at hanging\.py:\d+", first)
    assert "inside C: it did not answer" in done.stdout
    assert "prefetch-1" in done.stdout
    assert done.returncode == 0


def test_a_handler_of_the_job_stays(place: Path) -> None:
    usual = choose_signal()
    assert usual is not None
    with job("wait", 0, own=usual) as (process, address):
        kept = next(place.glob(f"{process.pid}.*{ENDING}"))
        assert int(kept.name.split(".")[1]) != usual
        assert ask_one(address).threads
        os.kill(process.pid, usual)
        assert process.stdout is not None
        assert process.stdout.readline() == "mine\n"


def test_signals_that_anyone_uses_are_not_chosen() -> None:
    usual = choose_signal()
    assert usual is not None
    signal.signal(usual, signal.SIG_IGN)
    try:
        assert choose_signal() != usual
    finally:
        signal.signal(usual, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, [usual])
    try:
        assert choose_signal() != usual
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [usual])


def test_the_signal_is_left_as_it_was(tmp_path: Path) -> None:
    number = choose_signal()
    found = StackSignal()
    found.open(tmp_path)
    assert [path.name.endswith(ENDING) for path in tmp_path.iterdir()] == [True]
    found.close()
    assert list(tmp_path.iterdir()) == []
    assert choose_signal() == number


def test_no_signal_is_sent_to_a_process_that_does_not_catch_it(place: Path) -> None:
    sleeping = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        started = Path(f"/proc/{sleeping.pid}/stat").read_text().rpartition(")")[2].split()[19]
        (place / f"{sleeping.pid}.56.{started}{ENDING}").touch()
        found = ask_one(place / f"{sleeping.pid}{sockets.ENDING}")
        assert not found.threads
        assert "no longer catches" in found.why
        assert sleeping.poll() is None
    finally:
        sleeping.kill()
        sleeping.wait()


def test_files_of_ended_jobs_are_removed(place: Path) -> None:
    with job("wait", 0):
        assert len(list(place.glob(f"*{ENDING}"))) == 1
    assert ask.listening() == []
    assert list(place.iterdir()) == []


def test_nobody_listens(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert not show_stacks(["all"], PlainTalk())
    assert "No process is listening" in capsys.readouterr().err
    assert ask_all([]) == []


def test_the_sentence_names_what_was_called_and_where() -> None:
    found = [*(process(rank, REDUCE) for rank in range(64) if rank != 17), process(17, LOAD)]
    assert next(write_stacks(found)) == (
        "Ranks 0–16, 18–63 wait in all_reduce at train.py:88; rank 17 is in DataLoader.__next__ at train.py:10."
    )
    assert [len(processes) for processes, _ in group_main(found)] == [63, 1]


def test_code_of_the_users_own_is_not_a_wait() -> None:
    own = ThreadStack("MainThread", True, (("reduce", "/job/train.py", 7), ("<module>", "/job/train.py", 9)))
    assert describe_group([process(1, own.frames)], own) == "rank 1 is in reduce at train.py:7"
    assert find_place(()) == ("no Python function", None)


def test_what_faulthandler_writes() -> None:
    text = (
        "Thread 0x0000ffff86a1f1a0 (most recent call first):\n"
        '  File "/usr/lib/python3.11/threading.py", line 331 in wait\n'
        "\n"
        "Thread 0x0000ffff87a3f1a0 (most recent call first):\n"
        '  File "/x/stepscope/capture/process/guarded.py", line 22 in run\n'
        "\n"
        "Current thread 0x0000ffff893ba020 (most recent call first):\n"
        '  File "/job/train.py", line 9 in inside_c\n'
        '  File "/job/train.py", line ??? in <module>\n'
        "garbage\n"
    )
    main, other = parse_dump(text)
    assert main == ThreadStack(
        "MainThread", True, (("inside_c", "/job/train.py", 9), ("<module>", "/job/train.py", 0))
    )
    assert other.frames == (("wait", "/usr/lib/python3.11/threading.py", 331),)
    assert parse_dump("") == ()
