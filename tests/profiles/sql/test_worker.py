"""The process: what it gave up, how it ends, and what its limits do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stepscope.errors import StepscopeError
from stepscope.profiles.sql import client
from stepscope.profiles.sql.client import QueryTooLarge, QueryTooLong, Worker, Workers
from stepscope.profiles.sql.wire import Order
from tests.builders.traces import HandmadeProfile
from tests.patience import PATIENCE_S, tries
from tests.profiles.sql.asking import Asking

PROFILE = HandmadeProfile()
# Without a limit it would take years.
ENDLESS = "SELECT COUNT(*) FROM range(1000000000) a, range(1000000000) b WHERE hash(a.range + b.range) = 7"
LARGE = "SELECT LIST(a.range) FROM range(100000000) a, range(100) b GROUP BY b.range"


def is_running(pid: int) -> bool:
    """Whether there is such a process, and not only what is left of it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_time_is_bounded_and_the_worker_stays() -> None:
    asking = Asking()
    try:
        worker = asking.worker
        with pytest.raises(QueryTooLong, match=r"longer than 0.5 seconds and was ended"):
            asking.answer(ENDLESS, 0.5)
        assert asking.answer("SELECT COUNT(*) FROM events", 60).frame.item() == 11
        assert asking.worker is worker
    finally:
        asking.close()


def test_memory_is_bounded() -> None:
    asking = Asking()
    try:
        with pytest.raises(QueryTooLarge, match="more than 100 MiB"):
            asking.answer(LARGE, PATIENCE_S, 100 << 20)
        assert asking.answer("SELECT COUNT(*) FROM events", PATIENCE_S, 100 << 20).frame.item() == 11
    finally:
        asking.close()


def test_a_worker_that_does_not_listen_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "START_SECONDS", PATIENCE_S)
    with Worker() as worker:
        worker.begin(Order("SELECT COUNT(*) FROM events", 0.1))
        monkeypatch.setattr(client, "START_SECONDS", 0.5)
        monkeypatch.setattr(client, "GRACE_S", 0.1)
        os.kill(worker._process.pid, signal.SIGSTOP)
        with pytest.raises(QueryTooLong):
            worker.finish(PROFILE.table)
        assert not worker.is_alive


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_the_process_can_open_nothing() -> None:
    with Worker() as worker:
        protections = " ".join(worker.protections)
        pid = worker._process.pid
        limits = Path(f"/proc/{pid}/limits").read_text()
        status = Path(f"/proc/{pid}/status").read_text()
        environment = Path(f"/proc/{pid}/environ").read_bytes()
        opened = [str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()]
    assert limits.partition("Max open files")[2].split()[:2] == ["0", "0"]
    assert limits.partition("Max file size")[2].split()[:2] == ["0", "0"]
    assert "no further file or socket" in protections
    assert "NoNewPrivs:\t1" in status or "Landlock" not in protections
    names = {each.partition(b"=")[0].decode() for each in environment.split(b"\0") if each}
    assert names - {"PYTHONPATH", "PYTHONSAFEPATH", *client._KEPT} == set()
    assert [
        path
        for path in opened
        if not path.startswith(("pipe:", "anon_inode:", "/dev/null", f"/proc/{pid}/status"))
    ] == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Landlock is Linux's")
def test_landlock_keeps_files_and_connections_away(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    script = f"""
import socket, threading
from stepscope.profiles.sql import sandbox
def attempt(what, *arguments):
    try:
        what(*arguments)
        return "done"
    except OSError as error:
        return type(error).__name__
def told(label, *results):
    print(label, *results)
def connect():
    with socket.socket() as s:
        s.connect(("127.0.0.1", 1))
version = sandbox._landlock(may_read=True)
print("version", version)
told("first", attempt(open, {str(tmp_path / "secret")!r}), attempt(open, {str(tmp_path / "new")!r}, "w"), attempt(connect))
sandbox._landlock(may_read=False)
told("then", attempt(open, {str(tmp_path / "secret")!r}))
found = []
thread = threading.Thread(target=lambda: found.append(attempt(open, {str(tmp_path / "secret")!r})))
thread.start(); thread.join()
told("thread", *found)
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    version, first, then, thread = ended.stdout.splitlines()
    if version == "version 0":
        pytest.skip("this kernel has no Landlock")
    refused = "PermissionError" if int(version.split()[1]) >= 4 else "ConnectionRefusedError"
    assert first == f"first done PermissionError {refused}"
    assert then == "then PermissionError"
    assert thread == "thread PermissionError"


def test_a_worker_that_nobody_asks_ends() -> None:
    with Worker(idle_seconds=0.1) as worker:
        _ = worker.protections
        assert any(not worker.is_alive for _ in tries())


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_a_worker_ends_with_its_parent_also_during_a_query() -> None:
    script = f"""
import os, threading, time
from stepscope.profiles.sql.client import Worker
from stepscope.profiles.sql.wire import Order
worker = Worker()
worker.begin(Order("SELECT 1"))
worker.finish(None)
threading.Thread(target=lambda: worker.begin(Order({ENDLESS!r})), daemon=True).start()
time.sleep(0.3)
print(worker._process.pid, flush=True)
os.kill(os.getpid(), 9)
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    pid = int(ended.stdout)
    assert any(not is_running(pid) for _ in tries())


def test_a_worker_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_RUN", "import no_such_module")
    with Worker() as worker, pytest.raises(StepscopeError, match="does not start"):
        worker.begin(Order("SELECT 1"))


def test_what_duckdb_prints_reaches_nobody() -> None:
    script = """
from stepscope.profiles.sql.client import Worker
from stepscope.profiles.sql.wire import Order
import sys
with Worker(0.1) as worker:
    worker.begin(Order("SELECT 1 AS a"))
    worker.finish(None)
assert "duckdb" not in sys.modules
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (ended.stdout, ended.stderr) == ("", "")


class TestWorkers:
    """Kept between queries, but not too many of them."""

    ORDER = Order("SELECT COUNT(*) AS n FROM events")

    def test_the_next_query_about_the_same_profile_gets_the_same_process(self) -> None:
        workers = Workers(2)
        try:
            for _ in range(2):
                answer = workers.ask("a", self.ORDER, PROFILE.table, 1)
                assert answer is not None
                assert answer.frame.item() == 11
            ((_, first),) = workers._idle
            workers.ask("b", self.ORDER, PROFILE.table, 1)
            assert len(workers._idle) == 2
            workers.ask("c", self.ORDER, PROFILE.table, 1)
            assert [key[0] for key, _ in workers._idle] == ["b", "c"]
            assert not first.is_alive
        finally:
            workers.close()
        assert workers._idle == []

    def test_one_that_has_ended_is_replaced(self) -> None:
        workers = Workers(1)
        try:
            workers.ask("a", self.ORDER, PROFILE.table, 1)
            workers._idle[0][1]._process.kill()
            answer = workers.ask("a", self.ORDER, PROFILE.table, 1)
            assert answer is not None
            assert answer.frame.item() == 11
        finally:
            workers.close()

    def test_all_busy(self) -> None:
        workers = Workers(1)
        workers._free.acquire()
        began = time.monotonic()
        assert workers.ask("a", self.ORDER, PROFILE.table, 0.1) is None
        assert time.monotonic() - began >= 0.1
