"""Storing goes on after load() has returned: waited for by whoever needs it, and at the end of the program."""

from __future__ import annotations

import errno
import logging
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

from stepscope.formats.source import Source
from stepscope.profiles.cache import background, stored
from stepscope.profiles.cache import cache as caches
from stepscope.profiles.cache.cache import Cache, identify
from stepscope.profiles.cache.place import MANIFEST, Identity
from stepscope.profiles.cache.stored import Contents
from stepscope.profiles.load import load
from stepscope.trace.trace import Trace
from tests.builders import traces
from tests.builders.files import put
from tests.profiles.cache.test_stored import check_same, never

PROGRAM = """
import sys, time
from stepscope.profiles.cache import cache
write = cache.write
def slowly(*arguments):
    time.sleep(0.5)
    return write(*arguments)
cache.write = slowly
import stepscope
stepscope.load(sys.argv[1])
print("loaded")
"""


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture
def identity(tmp_path: Path) -> Identity:
    file = tmp_path / "trace.json"
    file.write_bytes(b"some profile")
    found = identify(Source(str(file)))
    assert found is not None
    return found


def test_the_caller_goes_on_and_the_next_open_waits(
    cache: Cache, identity: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_write = threading.Event()

    def write(trace: Trace, folder: Path) -> Contents:
        assert may_write.wait(60)
        return stored.write(trace, folder)

    monkeypatch.setattr(caches, "write", write)
    assert cache.store_later(identity, traces.trace()) is None
    assert not (cache.folder / identity.key).exists()
    threading.Timer(0.1, may_write.set).start()
    found = cache.open(identity, traces.trace().info.path, never)
    assert found is not None
    check_same(found, traces.trace())
    assert [path.name for path in cache.folder.iterdir()] == [identity.key]


def test_a_cache_that_cannot_be_written_is_known_at_once(
    cache: Cache, identity: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caches, "SPARE_BYTES", 1 << 60)
    problem = cache.store_later(identity, traces.trace())
    assert problem is not None
    assert problem.code == "cache-unwritable"


def test_what_fails_later_is_logged_and_leaves_nothing(
    cache: Cache, identity: Identity, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(caches, "write", fail)
    with caplog.at_level(logging.WARNING):
        assert cache.store_later(identity, traces.trace()) is None
        background.wait()
    assert "could not be cached" in caplog.text
    assert "No space left on device" in caplog.text
    assert list(cache.folder.iterdir()) == []


def test_without_threads_it_is_stored_at_once(
    cache: Cache, identity: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert cache.store_later(identity, traces.trace()) is None
    assert (cache.folder / identity.key / MANIFEST).exists()


def test_work_with_the_same_key_takes_turns() -> None:
    done: list[int] = []
    first = threading.Event()

    def begin() -> None:
        first.wait(60)
        done.append(1)

    background.start("same", begin)
    threading.Timer(0.05, first.set).start()
    background.start("same", lambda: done.append(2))
    background.wait("same")
    assert done == [1, 2]


def test_work_is_postponed_until_it_is_needed_or_nobody_is_busy() -> None:
    done: list[str] = []
    with background.postponed():
        background.start("needed", lambda: done.append("needed"))
        background.start("patient", lambda: done.append("patient"))
        background.wait("needed")
        assert done == ["needed"]
    background.wait("patient")
    assert done == ["needed", "patient"]


def test_only_so_much_is_postponed() -> None:
    done: list[int] = []
    with background.postponed():
        for number in range(background.MOST_POSTPONED + 2):
            background.start(f"work {number}", partial(done.append, number))
        background.wait(f"work {background.MOST_POSTPONED + 1}")
        assert done
    background.wait()
    assert sorted(done) == list(range(background.MOST_POSTPONED + 2))


def test_a_folder_that_is_gone_by_then_harms_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    put(tmp_path, "trace.json")
    monkeypatch.setenv("STEPSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(caches, "write", lambda trace, folder: folder.parent.joinpath("gone").stat())
    profile = load(tmp_path / "trace.json")
    background.wait()
    assert len(profile.events) == 4
    assert "No such file" in caplog.text


def test_the_program_ends_when_all_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "trace.json")
    monkeypatch.setenv("STEPSCOPE_CACHE", str(tmp_path / "cache"))
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "trace.json")]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (ended.stdout, ended.stderr) == ("loaded\n", "")
    assert len(list((tmp_path / "cache").glob(f"*/{MANIFEST}"))) == 1


def test_what_was_postponed_can_begin_beside_the_rest() -> None:
    done = threading.Event()
    with background.postponed():
        background.start("beside", done.set)
        assert not done.wait(0.05)
        background.begin_postponed()
        assert done.wait(60)
