"""From a path to a profile."""

from __future__ import annotations

import gzip
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import stepscope
from stepscope import formats
from stepscope.errors import NothingFound, StepscopeError, UnreadableFile
from stepscope.formats.reader import Progress
from stepscope.formats.source import Source
from stepscope.profiles.cache import background
from stepscope.profiles.find.catalog import scan
from stepscope.profiles.load import load, load_run
from stepscope.profiles.profile import Profile
from stepscope.trace.trace import Trace
from tests.builders.files import kineto, put


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The files that were really read, with an empty cache to begin with."""
    monkeypatch.setenv("STEPSCOPE_CACHE", str(tmp_path_factory.mktemp("cache") / "stepscope"))
    seen: list[str] = []
    real = formats.read

    def read(source: Source, progress: Progress) -> Trace:
        seen.append(source.name)
        return real(source, progress)

    monkeypatch.setattr(formats, "read", read)
    yield seen


def codes(profile: Profile) -> set[str]:
    return set(profile.problems["code"])


def cache_files() -> list[Path]:
    background.wait()
    return sorted(Path(os.environ["STEPSCOPE_CACHE"]).glob("*/*"))


def test_a_file(tmp_path: Path, reads: list[str]) -> None:
    put(tmp_path, "trace.json")
    profile = stepscope.load(tmp_path / "trace.json")
    assert (profile.ranks, len(profile.events), profile.path) == ([0], 4, f"{tmp_path}/trace.json")
    assert codes(profile) == set()


def test_the_second_open_reads_nothing(tmp_path: Path, reads: list[str]) -> None:
    put(tmp_path, "trace.json.gz")
    first, second = load(tmp_path / "trace.json.gz"), load(tmp_path / "trace.json.gz")
    assert reads == ["trace.json.gz"]
    assert second.events.equals(first.events)
    assert second.trace(0).arguments(1) == first.trace(0).arguments(1) != {}


def test_without_the_cache(tmp_path: Path, reads: list[str]) -> None:
    put(tmp_path, "trace.json")
    load(tmp_path, cache=False)
    load(tmp_path, cache=False)
    assert reads == ["trace.json"] * 2
    assert cache_files() == []


def test_a_changed_file_is_read_again(tmp_path: Path, reads: list[str]) -> None:
    put(tmp_path, "trace.json")
    load(tmp_path)
    put(tmp_path, "trace.json", content=kineto(events=5))
    assert len(load(tmp_path).events) == 6
    assert len(reads) == 2


def test_a_damaged_cache_is_read_again(tmp_path: Path, reads: list[str]) -> None:
    put(tmp_path, "trace.json")
    expected = load(tmp_path).events
    for file in cache_files():
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 0xFF
        file.unlink()
        file.write_bytes(data)
    assert load(tmp_path).events.equals(expected)
    assert len(reads) == 2
    assert load(tmp_path).events.equals(expected)
    assert len(reads) == 2


def test_damage_after_opening(tmp_path: Path, reads: list[str]) -> None:
    put(tmp_path, "rank0.json", "rank1.json")
    profile = load(tmp_path)
    shutil.rmtree(os.environ["STEPSCOPE_CACHE"])
    assert len(profile.events) == 8
    assert sorted(reads) == ["rank0.json", "rank0.json", "rank1.json", "rank1.json"]


def test_the_profile_changed_after_opening(tmp_path: Path, reads: list[str]) -> None:
    put(tmp_path, "rank0.json", "rank1.json")
    profile = load(tmp_path)
    shutil.rmtree(os.environ["STEPSCOPE_CACHE"])
    put(tmp_path, "rank1.json", content=kineto(events=9))
    with pytest.raises(StepscopeError, match=r"rank1\.json changed after it was opened"):
        _ = profile.events


def test_an_unwritable_cache_is_only_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "rank0.json", "rank1.json")
    monkeypatch.setenv("STEPSCOPE_CACHE", str(tmp_path / "rank0.json" / "cache"))
    profile = load(f"{tmp_path}/*.json")
    assert len(profile.events) == 8
    found = profile.problems.row(0, named=True)
    assert (found["code"], found["severity"], found["count"]) == ("cache-unwritable", "warning", 2)


def test_a_file_that_is_still_written(
    tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "trace.json")
    real = formats.read

    def read(source: Source, progress: Progress) -> Trace:
        found = real(source, progress)
        os.utime(source.path, ns=(1, 1))
        return found

    monkeypatch.setattr(formats, "read", read)
    assert codes(load(tmp_path)) == {"file-changed"}
    assert cache_files() == []


def test_several_ranks(tmp_path: Path, reads: list[str]) -> None:
    for rank in (10, 9, 0):
        put(tmp_path, f"trace_rank_{rank}.json", content=kineto(events=rank + 1))
    profile = load(tmp_path)
    assert profile.ranks == [0, 9, 10]
    assert [len(trace.events) for trace in profile.traces] == [2, 11, 12]
    assert profile.events.columns[0] == "rank"
    assert profile.events["rank"].unique().to_list() == [0, 9, 10]


def test_the_trace_tells_its_rank(tmp_path: Path, reads: list[str]) -> None:
    put(tmp_path, "rank0.json", content=kineto(rank=1, world_size=2))
    put(tmp_path, "rank1.json", content=kineto(rank=0, world_size=2))
    profile = load(tmp_path)
    assert [trace.info.path for trace in profile.traces] == [
        f"{tmp_path}/rank1.json",
        f"{tmp_path}/rank0.json",
    ]
    assert codes(profile) == set()


def test_missing_ranks(tmp_path: Path, reads: list[str]) -> None:
    put(tmp_path, "rank3.json", content=kineto(rank=3, world_size=8))
    severities = [load(path).problems["severity"].to_list() for path in (tmp_path, tmp_path / "rank3.json")]
    assert severities == [["warning"], ["info"]]


def test_some_ranks(tmp_path: Path, reads: list[str]) -> None:
    put(tmp_path, *(f"rank{rank}.json" for rank in range(5)))
    assert load(tmp_path, rank=3).ranks == [3]
    assert reads == ["rank3.json"]
    assert load(tmp_path, rank=[1, 4]).ranks == [1, 4]
    with pytest.raises(NothingFound) as caught:
        load(tmp_path, rank=9)
    assert str(caught.value).endswith("Available: 0–4")


def test_some_ranks_that_only_the_traces_tell(tmp_path: Path, reads: list[str]) -> None:
    for worker, rank in (("vm_1", 1), ("vm_2", 0)):
        put(tmp_path, f"{worker}.1694128201545.pt.trace.json", content=kineto(rank=rank, world_size=2))
    profile = load(tmp_path, rank=0)
    assert [Path(trace.info.path).name for trace in profile.traces] == ["vm_2.1694128201545.pt.trace.json"]


def test_the_newest_of_several_runs(tmp_path: Path, reads: list[str]) -> None:
    put(tmp_path, "old.json", "new.json")
    os.utime(tmp_path / "old.json", (1, 1))
    profile = load(tmp_path)
    assert profile.name == "new.json"
    assert reads == ["new.json"]
    assert [run.address for run in profile.other_runs] == [f"{tmp_path}/old.json"]
    assert codes(profile) == {"other-runs"}
    assert load(tmp_path, run="old.json").name == "old.json"
    assert load_run(profile.other_runs[0]).name == "old.json"


def test_every_run_of_a_catalog(tmp_path: Path, reads: list[str]) -> None:
    put(tmp_path, "a.json", "d_rank0.json", "d_rank1.json", "x/rank0.json", "x/rank1.json")
    for run in scan(tmp_path).runs:
        assert len(load_run(run).traces) == len(run.entries)
        assert run.address is not None
        assert len(load(run.address).traces) == len(run.entries)


def test_a_newest_run_that_is_no_profile(tmp_path: Path, reads: list[str]) -> None:
    put(tmp_path, "good.json")
    put(tmp_path, "bad.pt.trace.json", content=b"no JSON")
    os.utime(tmp_path / "good.json", (1, 1))
    profile = load(tmp_path)
    assert profile.name == "good.json"
    assert [(Path(item.path).name, item.reason) for item in profile.skipped] == [
        ("bad.pt.trace.json", "is not a profile: it is text, but not JSON.")
    ]
    assert profile.other_runs == []


def test_a_rank_that_cannot_be_read(tmp_path: Path, reads: list[str]) -> None:
    put(tmp_path, "rank0.pt.trace.json")
    put(tmp_path, "rank1.pt.trace.json", content=b"no JSON")
    profile = load(tmp_path)
    assert profile.ranks == [0]
    assert profile.problems.select("code", "severity").rows() == [("unreadable-file", "error")]
    assert len(profile.skipped) == 1


def test_no_rank_can_be_read(tmp_path: Path, reads: list[str]) -> None:
    put(tmp_path, "rank0.pt.trace.json", "rank1.pt.trace.json", content=b"no JSON")
    with pytest.raises(UnreadableFile, match="None of the 2 files"):
        load(tmp_path)


def test_a_url(reads: list[str]) -> None:
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for rank in range(2):
        memory.pipe(f"memory://bucket/rank{rank}.json.gz", gzip.compress(kineto()))
    profile = load("memory://bucket")
    assert profile.ranks == [0, 1]
    assert profile.table("traces")["path"].to_list() == [
        "memory:///bucket/rank0.json.gz",
        "memory:///bucket/rank1.json.gz",
    ]
    assert len(load("memory://bucket").events) == 8
    assert sorted(reads) == ["rank0.json.gz", "rank1.json.gz"]
    memory.pipe("memory://bucket/rank1.json.gz", gzip.compress(kineto(events=7)))
    assert len(load("memory://bucket").events) == 12


def test_a_filesystem_that_fails(reads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.pipe("memory://flaky/a.pt.trace.json", kineto())

    def fail(*_: object) -> None:
        raise LookupError("the token has expired")

    monkeypatch.setattr(formats, "read", fail)
    with pytest.raises(
        UnreadableFile, match=r"Cannot read .*a\.pt\.trace\.json: LookupError: the token has expired"
    ):
        load("memory://flaky")


def test_a_file_that_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "a.pt.trace.json")

    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(formats, "read", fail)
    with pytest.raises(UnreadableFile, match="Not enough memory for "):
        load(tmp_path, cache=False)


def progress_of(path: Path) -> list[tuple[int, int]]:
    """What a load says about its progress."""
    steps: list[tuple[int, int]] = []
    load(path, progress=lambda done, of: steps.append((done, of)))
    return steps


def assert_rises_to(total: int, steps: list[tuple[int, int]]) -> None:
    assert steps[-1] == (total, total)
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)


def test_progress(tmp_path: Path, reads: list[str]) -> None:
    put(tmp_path, "rank0.json", "rank1.json.gz", "rank2.json")
    total = sum(file.stat().st_size for file in tmp_path.iterdir())
    for _ in range(2):
        assert_rises_to(total, progress_of(tmp_path))


def test_ranks_are_read_side_by_side_but_not_all_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, *(f"rank{rank}.json" for rank in range(12)))
    running, most = 0, 0
    lock, real = threading.Lock(), formats.read

    def read(source: Source, progress: Progress) -> Trace:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        found = real(source, progress)
        with lock:
            running -= 1
        return found

    monkeypatch.setattr(formats, "read", read)
    assert load(tmp_path, cache=False).ranks == list(range(12))
    assert most <= 4


def test_relative_paths_and_pathlike(
    tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "logs/trace.json")
    monkeypatch.chdir(tmp_path)
    assert load("logs").table("traces")["path"].to_list() == ["logs/trace.json"]
    assert load(tmp_path / "logs").table("traces")["path"].to_list() == [f"{tmp_path}/logs/trace.json"]
    assert len(reads) == 1
