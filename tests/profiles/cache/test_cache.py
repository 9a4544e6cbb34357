"""The cache: found again unchanged, forgotten when anything changes, never in the way."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from stepscope.formats.source import Source
from stepscope.problems.catalogue import CATALOGUE
from stepscope.profiles.cache import cache as caches
from stepscope.profiles.cache.cache import Cache, identify
from stepscope.profiles.cache.place import ASIDE, MANIFEST, Identity, default_folder, limit_bytes
from stepscope.trace.problems import Problem
from stepscope.trace.trace import Trace
from tests.builders import traces
from tests.patience import tries
from tests.profiles.cache.test_stored import check_same, harm, never


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "trace.json"
    path.write_bytes(b"some profile")
    return path


def identity(file: Path) -> Identity:
    found = identify(Source(str(file)))
    assert found is not None
    return found


def reopened(cache: Cache, file: Path) -> Trace | None:
    return cache.open(identity(file), "/somewhere/rank0.pt.trace.json", never)


def entry(cache: Cache, file: Path) -> Path:
    return cache.folder / identity(file).key


def test_what_was_stored_is_found(cache: Cache, file: Path) -> None:
    assert reopened(cache, file) is None
    assert cache.store(identity(file), traces.trace()) is None
    found = reopened(cache, file)
    assert found is not None
    check_same(found, traces.trace())


def test_a_trace_is_called_as_it_is_opened(cache: Cache, file: Path) -> None:
    cache.store(identity(file), traces.trace())
    found = cache.open(identity(file), "other/name.json", never)
    assert found is not None
    assert found.info.path == "other/name.json"


def test_only_the_user_may_enter(cache: Cache, file: Path) -> None:
    cache.store(identity(file), traces.trace())
    assert stat.S_IMODE(cache.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(entry(cache, file).stat().st_mode) == 0o700


def test_what_others_may_have_written_is_not_believed(cache: Cache, file: Path) -> None:
    cache.store(identity(file), traces.trace())
    entry(cache, file).chmod(0o777)
    assert reopened(cache, file) is None


def wait_for_the_clock_of_files(file: Path) -> None:
    """Systems count the times of files in steps of up to 10 ms: two changes in one of them cannot be told apart."""
    probe = file.with_name("probe")
    for _ in tries():
        probe.write_bytes(b"")
        if probe.stat().st_ctime_ns > file.stat().st_ctime_ns:
            return


@pytest.mark.parametrize("change", ["content", "time", "same size and time", "replaced"])
def test_a_changed_file_is_another(file: Path, change: str) -> None:
    before, facts = identity(file), file.stat()
    wait_for_the_clock_of_files(file)
    if change == "content":
        file.write_bytes(b"another profile")
    elif change == "time":
        os.utime(file, ns=(1, 1))
    elif change == "same size and time":
        file.write_bytes(b"some PROFILE")
        os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    else:
        other = file.with_name("other")
        other.write_bytes(b"some PROFILE")
        os.utime(other, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        other.replace(file)
    assert identity(file) != before


def test_other_names_of_a_file_are_the_same(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = file.with_name("link.json")
    link.symlink_to(file)
    monkeypatch.chdir(file.parent)
    assert identity(link) == identity(file) == identity(Path(file.name))


@pytest.mark.parametrize("version", ["SCHEMA_VERSION", "READER_VERSION", "TABLES"])
def test_another_version_is_another_state(file: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    before = identity(file)
    monkeypatch.setattr(caches, version, {} if version == "TABLES" else 999)
    assert identity(file) != before


def test_other_words_for_problems_are_another_state(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables hold titles and fixes: those of an older catalogue would differ from the documentation."""
    before = identity(file)
    monkeypatch.setitem(CATALOGUE, "truncated", replace(CATALOGUE["truncated"], title="Cut"))
    caches._catalogue_digest.cache_clear()
    assert identity(file) != before
    caches._catalogue_digest.cache_clear()


def test_an_older_state_of_the_file_is_forgotten(cache: Cache, file: Path) -> None:
    cache.store(identity(file), traces.trace())
    old = entry(cache, file)
    file.write_bytes(b"a newer profile")
    cache.store(identity(file), traces.trace())
    assert not old.exists()
    assert entry(cache, file).exists()


def test_remote_files_by_their_tags(cache: Cache) -> None:
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.pipe("memory://bucket/trace.json", b"one")
    before = identify(Source("memory://bucket/trace.json", memory))
    assert before == identify(Source("memory://bucket/trace.json", memory))
    memory.pipe("memory://bucket/trace.json", b"two")
    assert before != identify(Source("memory://bucket/trace.json", memory))
    assert identify(Source("memory://bucket/gone.json", memory)) is None


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "gone"])
def test_a_damaged_manifest_is_forgotten(cache: Cache, file: Path, damage: str) -> None:
    cache.store(identity(file), traces.trace())
    harm(entry(cache, file) / MANIFEST, damage)
    assert reopened(cache, file) is None or damage == "flip"


def test_a_manifest_of_another_profile(cache: Cache, file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_bytes(b"x")
    cache.store(identity(other), traces.trace())
    entry(cache, other).rename(entry(cache, file))
    assert reopened(cache, file) is None
    assert not entry(cache, file).exists()


@pytest.mark.parametrize("damage", ["cut", "gone", "empty"])
def test_files_of_another_size_are_noticed_at_once(cache: Cache, file: Path, damage: str) -> None:
    cache.store(identity(file), traces.trace())
    harm(entry(cache, file) / "events.arrow", damage)
    assert reopened(cache, file) is None
    assert not entry(cache, file).exists()


def test_flipped_bytes_are_noticed_on_use(cache: Cache, file: Path) -> None:
    cache.store(identity(file), traces.trace())
    harm(entry(cache, file) / "events.arrow", "flip")
    found = cache.open(identity(file), traces.trace().info.path, traces.trace)
    assert found is not None
    check_same(found, traces.trace())


def check_unwritable(problem: Problem | None, reason: str) -> None:
    assert problem is not None
    assert (problem.code, problem.severity) == ("cache-unwritable", "warning")
    assert reason in problem.detail


def test_a_cache_that_cannot_be_made(tmp_path: Path, file: Path) -> None:
    (tmp_path / "a file").write_bytes(b"")
    blocked = Cache(tmp_path / "a file" / "cache")
    assert reopened(blocked, file) is None
    check_unwritable(blocked.store(identity(file), traces.trace()), "Not a directory")
    blocked.prune()


def test_a_read_only_cache(cache: Cache, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    check_unwritable(cache.store(identity(file), traces.trace()), "Read-only file system")


def test_a_read_only_cache_can_still_be_read(
    cache: Cache, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.store(identity(file), traces.trace())

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "utime", refuse)
    assert reopened(cache, file) is not None


def test_a_disk_without_room(cache: Cache, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "SPARE_BYTES", 1 << 60)
    check_unwritable(cache.store(identity(file), traces.trace()), "are free")
    assert list(cache.folder.iterdir()) == []


def test_a_disk_that_fills_up_while_writing(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "small"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("may not mount")
    try:
        monkeypatch.setattr(caches, "SPARE_BYTES", -(1 << 60))
        rows = 100_000
        events = pl.DataFrame({"id": range(rows), "start_ns": range(rows)})
        check_unwritable(Cache(place).store(identity(file), Trace({"events": events})), "No space left")
        assert list(place.iterdir()) == []
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_an_error_of_the_writer_leaves_nothing(
    cache: Cache, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(caches, "write", fail)
    check_unwritable(cache.store(identity(file), traces.trace()), "No space left on device")
    assert list(cache.folder.iterdir()) == []


def test_a_home_that_is_not_known(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(caches, "default_folder", fail)
    homeless = Cache()
    assert reopened(homeless, file) is None
    check_unwritable(homeless.store(identity(file), traces.trace()), "home directory")
    homeless.prune()


def several(cache: Cache, folder: Path, count: int) -> list[Path]:
    """Stored traces, the first used longest ago."""
    files = [folder / f"{i}.json" for i in range(count)]
    for age, file in enumerate(files):
        file.write_text(file.name)
        cache.store(identity(file), traces.trace())
        os.utime(entry(cache, file) / MANIFEST, (age, age))
    return files


def test_what_was_used_longest_ago_goes_first(cache: Cache, tmp_path: Path) -> None:
    files = several(cache, tmp_path, 4)
    assert reopened(cache, files[0]) is not None
    one = sum(part.stat().st_size for part in entry(cache, files[0]).iterdir())
    Cache(cache.folder, limit=2 * one + 100).prune()
    assert [entry(cache, file).exists() for file in files] == [True, False, False, True]


def test_what_dead_writers_left_goes_after_a_while(cache: Cache, file: Path) -> None:
    cache.store(identity(file), traces.trace())
    old, new = (cache.folder / f"{ASIDE}{name}" for name in ("old", "new"))
    for folder in (old, new):
        folder.mkdir()
    os.utime(old, (1, 1))
    (cache.folder / "someone's notes.txt").write_text("kept")
    cache.prune()
    assert sorted(path.name for path in cache.folder.iterdir()) == sorted(
        [new.name, entry(cache, file).name, "someone's notes.txt"]
    )


def test_a_trace_larger_than_the_cache(cache: Cache, file: Path) -> None:
    check_unwritable(Cache(cache.folder, limit=10).store(identity(file), traces.trace()), "the limit is 10 B")


def test_no_cache_at_all(cache: Cache, file: Path) -> None:
    assert Cache(cache.folder, limit=0).store(identity(file), traces.trace()) is None
    assert not cache.folder.exists()


def test_several_writers_at_once(cache: Cache, file: Path) -> None:
    problems: list[Problem | None] = []
    threads = [
        threading.Thread(target=lambda: problems.append(cache.store(identity(file), traces.trace())))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == [None] * 8
    assert [path.name for path in cache.folder.iterdir()] == [identity(file).key]
    found = reopened(cache, file)
    assert found is not None
    check_same(found, traces.trace())


def test_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("STEPSCOPE_CACHE", str(tmp_path / "mine"))
    assert default_folder() == tmp_path / "mine"
    monkeypatch.delenv("STEPSCOPE_CACHE")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert default_folder() == tmp_path / ".cache" / "stepscope"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_folder() == tmp_path / "xdg" / "stepscope"
    monkeypatch.setattr("sys.platform", "darwin")
    assert default_folder() == tmp_path / "Library" / "Caches" / "stepscope"


@pytest.mark.parametrize(("text", "expected"), [("1.5", 1_500_000_000), ("0", 0), ("lots", 20_000_000_000)])
def test_limit(monkeypatch: pytest.MonkeyPatch, text: str, expected: int) -> None:
    monkeypatch.setenv("STEPSCOPE_CACHE_GB", text)
    assert limit_bytes() == expected
