"""What is found under a path, and what is skipped and why."""

from __future__ import annotations

import gzip
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stepscope.errors import NothingFound, StepscopeError, UnreadableFile
from stepscope.formats.source import Source
from stepscope.profiles.find import catalog as catalogs
from stepscope.profiles.find import walk
from stepscope.profiles.find.catalog import Catalog, choose, scan
from stepscope.profiles.load import load
from tests.builders.files import kineto, put

RUN = "plugins/profile/2026_11_14_23_49_41"


def found(catalog: Catalog) -> list[str]:
    return sorted(Path(item.path).name for run in catalog.runs for item in run.entries)


def skipped(catalog: Catalog) -> dict[str, str]:
    return {Path(item.path).name: item.reason for item in catalog.skipped}


def test_every_layout_in_one_folder(tmp_path: Path) -> None:
    put(tmp_path, f"deep/er/{RUN}/vm.xplane.pb", "vm_1.1694128201545.pt.trace.json.gz", "rank_3/trace.json",
        "x/trace_rank_00007.json", "dp0_pp0_tp0_dcp0_ep0_rank0.1694128201545.pt.trace.json.gz", "bs_8_rank0.json.gz",
        "1759-TP-0.trace.json.gz", "trace.json", "t.chrome_trace")  # fmt: skip
    catalog = scan(tmp_path)
    assert len(catalog.runs) == 9
    assert catalog.skipped == []
    assert (catalog.looked_at, catalog.folders) == (9, 8)


@pytest.mark.parametrize(
    "copy",
    ["copy.pt.trace.json", "vm_1.1694128201545_copy.pt.trace.json", "vm_9.1694128201545.pt.trace.json"],
)
def test_a_copy_of_a_rank_is_no_rank_and_no_run(tmp_path: Path, copy: str) -> None:
    put(tmp_path, "vm_1.1694128201545.pt.trace.json", content=kineto(rank=0, world_size=2))
    put(tmp_path, "vm_2.1694128201545.pt.trace.json", content=kineto(rank=1, world_size=2))
    put(tmp_path, copy, content=kineto(rank=0, world_size=2))
    catalog = scan(tmp_path)
    assert [len(run.entries) for run in catalog.runs] == [2]
    assert skipped(catalog) == {copy: "a copy of vm_1.1694128201545.pt.trace.json"}
    profile = load(tmp_path, cache=False)
    assert profile.ranks == [0, 1]
    assert [Path(each.path).name for each in profile.skipped] == [copy]


def test_equal_files_that_know_no_rank_are_not_taken_for_copies(tmp_path: Path) -> None:
    put(tmp_path, "a/one.json", "a/two.json", content=kineto())
    put(tmp_path, "b/rank0.json", "b/rank1.json", content=kineto(rank=0, world_size=2))
    assert skipped(scan(tmp_path)) == {}


def test_ranks_are_told_by_names_and_folders(tmp_path: Path) -> None:
    put(tmp_path, "rank_3/trace.json", "rank_10/trace.json")
    assert [item.rank for item in scan(tmp_path).runs[0].entries] == [3, 10]


def test_the_json_twin_of_an_xplane(tmp_path: Path) -> None:
    put(tmp_path, f"{RUN}/vm.xplane.pb", f"{RUN}/vm.trace.json.gz", f"{RUN}/perfetto_trace.json.gz")
    catalog = scan(tmp_path)
    assert found(catalog) == ["vm.xplane.pb"]
    assert skipped(catalog) == {
        "vm.trace.json.gz": "twin of vm.xplane.pb",
        "perfetto_trace.json.gz": "twin of vm.xplane.pb",
    }
    assert found(scan(tmp_path / RUN / "vm.trace.json.gz")) == ["vm.trace.json.gz"]


def test_json_without_an_xplane_is_taken(tmp_path: Path) -> None:
    put(tmp_path, f"{RUN}/vm.trace.json.gz")
    assert found(scan(tmp_path)) == ["vm.trace.json.gz"]


def test_an_unpacked_file_beside_the_packed_one(tmp_path: Path) -> None:
    put(tmp_path, "rank0.json", "rank0.json.gz")
    assert found(scan(tmp_path)) == ["rank0.json"]
    assert skipped(scan(tmp_path)) == {"rank0.json.gz": "twin of rank0.json"}


def test_reasons(tmp_path: Path) -> None:
    put(tmp_path, "empty.pt.trace.json", content=b"")
    put(tmp_path, "notes.json", content=b'{"a": 1}')
    put(tmp_path, "mystery", "mem.pickle", content=b"\x80\x04\x95 pickle")
    put(tmp_path, "vm.pt.trace.json.tmp", ".secret.json", "vm.op_stats.pb", "train.py")
    put(tmp_path, ".git/trace.json", "__pycache__/trace.json")
    catalog = scan(tmp_path)
    assert catalog.runs == []
    reasons = skipped(catalog)
    assert reasons["empty.pt.trace.json"] == "an empty file"
    assert reasons["notes.json"] == "JSON without traceEvents, not a trace"
    assert "pickle" in reasons["mystery"] and "pickle" in reasons["mem.pickle"]
    assert "writer that died" in reasons["vm.pt.trace.json.tmp"]
    assert reasons[".git"] == reasons["__pycache__"] == "a folder that holds no profiles, by its name"
    assert {".secret.json", "vm.op_stats.pb", "train.py"} <= set(reasons)


def test_names_alone_are_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "a.pt.trace.json", "vm.xplane.pb", "train.py", "model.pt")
    monkeypatch.setattr(catalogs, "_inside", lambda item: pytest.fail(f"opened {item.path}"))
    assert found(scan(tmp_path)) == ["a.pt.trace.json", "vm.xplane.pb"]


def test_a_data_set_is_not_opened_file_by_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogs, "FILES_OPENED", 2)
    put(tmp_path, *(f"{i}.json" for i in range(4)), content=b"{}")
    assert [item.reason.startswith("not opened") for item in scan(tmp_path).skipped] == [
        False,
        False,
        True,
        True,
    ]


def test_a_walk_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "FILES_LOOKED_AT", 3)
    put(tmp_path, *(f"{i}.txt" for i in range(9)))
    catalog = scan(tmp_path)
    assert catalog.looked_at == 3
    assert "not finished: 3 files were looked at" in catalog.skipped[-1].reason


def test_symlink_loops(tmp_path: Path) -> None:
    put(tmp_path, "a/trace.json")
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "itself").symlink_to(tmp_path / "itself")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    catalog = scan(tmp_path)
    assert found(catalog) == ["trace.json"]
    reasons = skipped(catalog)
    assert reasons["up"] == f"a link to a folder already visited: {tmp_path}"
    assert reasons["nowhere"] == "a link to nothing"
    assert "symbolic links" in reasons["itself"]


def test_each_file_once(tmp_path: Path) -> None:
    put(tmp_path, "a.pt.trace.json")
    (tmp_path / "b.pt.trace.json").symlink_to(tmp_path / "a.pt.trace.json")
    os.link(tmp_path / "a.pt.trace.json", tmp_path / "c.pt.trace.json")
    catalog = scan(tmp_path)
    assert found(catalog) == ["a.pt.trace.json"]
    assert set(skipped(catalog).values()) == {f"the same file as {tmp_path}/a.pt.trace.json"}


def test_pipes_and_sockets_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe.json")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.json")
        reasons = skipped(scan(tmp_path))
    assert set(reasons.values()) == {"not a regular file but a device, pipe or socket"}
    with pytest.raises(UnreadableFile, match="Not a regular file"):
        scan(tmp_path / "pipe.json")


def forbid(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Tests may run as root, whom no permission stops."""
    allowed = Path.iterdir

    def iterdir(self: Path) -> Any:
        if self.name == name:
            raise PermissionError(13, "Permission denied")
        return allowed(self)

    monkeypatch.setattr(Path, "iterdir", iterdir)


def test_a_folder_without_permission_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "mine/trace.json", "theirs/trace.json")
    forbid(monkeypatch, "theirs")
    catalog = scan(tmp_path)
    assert found(catalog) == ["trace.json"]
    assert skipped(catalog) == {"theirs": "no permission"}


def test_no_permission_for_the_folder_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forbid(monkeypatch, tmp_path.name)
    with pytest.raises(UnreadableFile, match="No permission to read") as caught:
        scan(tmp_path)
    assert "chmod u+rx" in str(caught.value)


def test_deep_folders(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        for _ in range(600):
            os.mkdir("d", dir_fd=folder)
            inner = os.open("d", os.O_RDONLY, dir_fd=folder)
            os.close(folder)
            folder = inner
        file = os.open("trace.json", os.O_WRONLY | os.O_CREAT, dir_fd=folder)
        os.write(file, kineto())
        os.close(file)
    finally:
        os.close(folder)
    catalog = scan(tmp_path)
    subprocess.run(["rm", "-r", str(tmp_path / "d")], check=True)  # too deep for pytest to tidy up
    assert found(catalog) == ["trace.json"]


def test_patterns(tmp_path: Path) -> None:
    put(tmp_path, "ddp_rank0.json", "ddp_rank1.json", "other.json", "sub/x.json")
    assert found(scan(f"{tmp_path}/ddp_*")) == ["ddp_rank0.json", "ddp_rank1.json"]
    assert found(scan(f"{tmp_path}/**/x.json")) == ["x.json"]
    assert found(scan(f"{tmp_path}/s*")) == ["x.json"]
    assert [run.name for run in scan(f"{tmp_path}/ddp_*").runs] == ["ddp_rank*.json"]


def test_a_name_with_brackets_is_no_pattern(tmp_path: Path) -> None:
    put(tmp_path, "run[1]/trace.json")
    catalog = scan(tmp_path / "run[1]")
    assert found(catalog) == ["trace.json"]
    assert scan(tmp_path / "run[1]" / "trace.json").runs[0].address == f"{tmp_path}/run[1]/trace.json"


def test_runs_by_name_or_address(tmp_path: Path) -> None:
    put(tmp_path, "a.json", "b.json")
    catalog = scan(tmp_path)
    assert choose(catalog, "a.json").entries[0].path == f"{tmp_path}/a.json"
    assert choose(catalog, f"{tmp_path}/b.json").name == "b.json"
    with pytest.raises(StepscopeError, match=r"No run c\.json"):
        choose(catalog, "c.json")


def test_the_newest_run_is_first(tmp_path: Path) -> None:
    put(tmp_path, "old.json", "new.json", "middle.json")
    for age, name in enumerate(["new.json", "middle.json", "old.json"]):
        os.utime(tmp_path / name, (1e9 - age, 1e9 - age))
    assert [run.name for run in scan(tmp_path).runs] == ["new.json", "middle.json", "old.json"]


def timed(worker: str, seconds: int) -> str:
    return f"{worker}.{(1_694_128_201 + seconds) * 1_000_000_000}.pt.trace.json"


def test_ranks_inside_files_whose_names_do_not_tell(tmp_path: Path) -> None:
    for seconds, first_pid in ((0, 100), (60, 200)):
        for rank in (1, 0):
            name = timed(f"vm_{first_pid + rank}", seconds + 30 * rank)
            put(tmp_path, name, content=kineto(rank=rank, world_size=2))
    put(tmp_path, timed("vm_300", 10), timed("vm_400", 20))
    runs = [[(item.worker, item.rank) for item in run.entries] for run in scan(tmp_path).runs]
    assert runs == [
        [("vm_200", 0), ("vm_201", 1)],
        [("vm_100", 0), ("vm_101", 1)],
        [("vm_400", None)],
        [("vm_300", None)],
    ]


def test_first_bytes_are_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"vm_1.{1694128201545 + number * 60_000}.pt.trace.json.gz" for number in range(3)]
    for name in names:
        put(tmp_path, name, content=gzip.compress(kineto(rank=0, world_size=2)))
    read: list[str] = []
    opening = Source.opening

    def noted(source: Source, count: int) -> tuple[bytes, bool]:
        read.append(source.name)
        return opening(source, count)

    monkeypatch.setattr(Source, "opening", noted)
    assert len(scan(tmp_path).runs) == 3
    assert sorted(read) == names


def test_remote_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for path in (
        "logs/rank0.pt.trace.json",
        "logs/rank1.pt.trace.json",
        "logs/notes.md",
        "logs/sub/trace.json",
    ):
        memory.pipe(f"memory://{path}", kineto())
    catalog = scan("memory://logs")
    assert found(catalog) == ["rank0.pt.trace.json", "rank1.pt.trace.json", "trace.json"]
    assert skipped(catalog) == {"notes.md": "not a profile, by its name (.md)"}
    assert {len(run.entries) for run in catalog.runs} == {1, 2}
    assert found(scan("memory://logs/rank*.json")) == ["rank0.pt.trace.json", "rank1.pt.trace.json"]
    assert found(scan("memory://logs/s*")) == ["trace.json"]
    assert found(scan("memory://logs/rank1.pt.trace.json")) == ["rank1.pt.trace.json"]
    with pytest.raises(NothingFound, match="No such file or folder"):
        scan("memory://log")


def test_file_urls(tmp_path: Path) -> None:
    put(tmp_path, "a b/trace.json")
    assert found(scan(f"file://{tmp_path}/a b")) == ["trace.json"]
    assert found(scan(f"file://{tmp_path}/a%20b")) == ["trace.json"]


def test_unknown_filesystems() -> None:
    with pytest.raises(StepscopeError, match="Cannot open nosuch://x"):
        scan("nosuch://x")


@pytest.mark.skipif("s3fs" in sys.modules, reason="s3fs is installed")
def test_a_filesystem_whose_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(StepscopeError) as caught:
        scan("s3://bucket/x")
    assert "pip install s3fs" in str(caught.value)
