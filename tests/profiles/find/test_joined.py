"""Files of one job are put together by what is inside, whatever they are called; files of other jobs are not."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path

import pytest

from stepscope.profiles.find.catalog import scan
from stepscope.profiles.load import load
from tests.builders.documents import event, kineto
from tests.builders.files import write
from tests.sample import spread

SECOND_US = 1e6
# As people name the files of ranks 0 to 3; {x} is the rank, the rest is what differs anyway.
SCHEMES = {
    "rank0.json": "rank{x}.json",
    "trace_rank_0.json.gz": "trace_rank_{x}.json.gz",
    "worker0/trace.json": "worker{x}/trace.json",
    "host_pid.timestamp": "node1_{pid}.{stamp}.pt.trace.json",
    "step_100_rank0": "step_100_rank{x}.json",
    "r00": "r0{x}.json",
    "gpu0": "gpu{x}.json.gz",
    "0.json": "{x}.json",
    "node0-1": "node{half}-{x}.json",
    "dp0_tp1_pp0": "dp{half}_tp{odd}_pp0.json",
    "rank-0/deep/file": "rank-{x}/profiler/{stamp}/vm_{pid}.{stamp}.pt.trace.json",
    "same name in folders": "{word}/trace.json.gz",
    "uuid": "{uuid}.json",
    "timestamps only": "{stamp}.json",
    "profile (1).json": "profile{copy}.json",
    "words": "{word}.pt.trace.json",
    "pids": "trace-{pid}.json.gz",
}
WORDS = ("alpha", "beta", "gamma", "delta")
UUIDS = (
    "9f1c2d34-8a7b-4c1e-9d55-0a1b2c3d4e5f", "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed",
    "f47ac10b-58cc-4372-a567-0e02b2c3d479", "6ec0bd7f-11c0-43da-975e-2a8ad9ebae0b",
)  # fmt: skip


def name(scheme: str, rank: int) -> str:
    """What the file of this rank is called. Other numbers do not follow the order of ranks."""
    return scheme.format(
        x=rank, half=rank // 2, odd=rank % 2, pid=9000 - 37 * rank, stamp=1_794_700_126_000 + 311 * ((rank * 3) % 4),
        uuid=UUIDS[rank], word=WORDS[rank], copy="" if rank == 0 else f" ({rank})",
    )  # fmt: skip


def trace(rank: int, world: int, at_s: float = 0, lasts_s: float = 1, backend: str = "nccl") -> bytes:
    """A recording of one rank that begins at this second and lasts as long."""
    times = [1e6 + SECOND_US * (at_s + lasts_s * place / 40) for place in range(41)]
    ops = [event("cpu_op", f"aten::{rank}", time, 5, pid=7, tid=7, args={"x": "y" * 4000}) for time in times]
    about = {"backend": backend, "rank": rank, "world_size": world}
    return kineto(*ops, distributedInfo=about, baseTimeNanoseconds=1_790_857_026_000_000_000)


def runs(folder: Path) -> list[list[str]]:
    """The files of each run, in order of names."""
    return sorted([item.path.removeprefix(f"{folder}/") for item in run.entries] for run in scan(folder).runs)


@pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)
def test_ranks_are_joined_whatever_they_are_called(tmp_path: Path, scheme: str) -> None:
    names = [name(scheme, rank) for rank in range(4)]
    for rank, path in enumerate(names):
        write(tmp_path / path, trace(rank, 4, at_s=0.01 * rank))
    assert runs(tmp_path) == [names]
    profile = load(tmp_path, cache=False)
    assert profile.ranks == [0, 1, 2, 3]
    assert [str(each.events["name"][0]) for each in profile.traces] == [f"aten::{rank}" for rank in range(4)]
    assert not {"missing-ranks", "duplicate-rank", "other-runs"} & set(profile.table("problems")["code"])


@pytest.mark.parametrize("scheme", spread([*SCHEMES.values()], 5))
def test_lists_of_paths_and_addresses_load_the_same(tmp_path: Path, scheme: str) -> None:
    files = [write(tmp_path / name(scheme, rank), trace(rank, 4)) for rank in range(4)]
    assert load([str(file) for file in files], cache=False).ranks == [0, 1, 2, 3]
    address = scan(tmp_path).runs[0].address
    assert address is not None and load(address, cache=False).ranks == [0, 1, 2, 3]


CORPUS = os.environ.get("STEPSCOPE_CORPUS", "")


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS, reason="wants STEPSCOPE_CORPUS")
@pytest.mark.parametrize("scheme", spread([*SCHEMES.values()], 8))
def test_real_ranks_are_joined_whatever_they_are_called(tmp_path: Path, scheme: str) -> None:
    """Four of eight real ranks: what is missing is reported as such, and nothing else is."""
    real = sorted((Path(CORPUS) / "public" / "dlrm_8ranks").glob("worker*.gz"))[:4]
    for rank, file in enumerate(real):
        target = tmp_path / name(scheme, rank)
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.name.endswith(".gz"):
            shutil.copy(file, target)
        else:
            target.write_bytes(gzip.decompress(file.read_bytes()))
    profile = load(tmp_path, cache=False)
    assert (profile.ranks, profile.other_runs) == ([0, 1, 2, 3], [])


def test_two_jobs_one_after_the_other_are_two_runs(tmp_path: Path) -> None:
    for rank in range(2):
        write(tmp_path / f"{WORDS[rank]}.json", trace(rank, 2))
        write(tmp_path / f"{WORDS[rank + 2]}.json", trace(rank, 2, at_s=90))
    assert runs(tmp_path) == [["alpha.json", "beta.json"], ["gamma.json", "delta.json"]]


def test_two_jobs_at_once_are_kept_apart_by_folder_and_name(tmp_path: Path) -> None:
    for rank in range(2):
        for job in "ab":
            later = 0.01 * (job == "b")
            write(tmp_path / f"{job}/{UUIDS[rank]}.json", trace(rank, 2, at_s=0.1 * rank + later))
            write(tmp_path / f"{job}_{WORDS[rank]}.json", trace(rank, 2, at_s=300 + 0.1 * rank + later))
    assert runs(tmp_path) == [
        [f"a/{UUIDS[0]}.json", f"a/{UUIDS[1]}.json"],
        ["a_alpha.json", "a_beta.json"],
        [f"b/{UUIDS[0]}.json", f"b/{UUIDS[1]}.json"],
        ["b_alpha.json", "b_beta.json"],
    ]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (trace(0, 4), trace(1, 8)),
        (trace(0, 4), trace(1, 4, at_s=60)),
        (trace(0, 4), trace(1, 4, backend="gloo")),
        (trace(0, 4), trace(0, 4)),
        (trace(0, 1), trace(0, 1)),
    ],
    ids=["sizes", "times", "backends", "ranks", "alone"],
)
def test_files_of_unrelated_jobs_are_not_joined(tmp_path: Path, first: bytes, second: bytes) -> None:
    write(tmp_path / "a.json", first)
    write(tmp_path / "b.json", second + b"\n")
    assert runs(tmp_path) == [["a.json"], ["b.json"]]


def test_a_long_window_overlaps_though_the_other_begins_later(tmp_path: Path) -> None:
    for ending in ("json", "json.gz"):
        write(tmp_path / ending / f"a.{ending}", trace(0, 4, lasts_s=120))
        write(tmp_path / ending / f"b.{ending}", trace(1, 4, at_s=60))
        assert len(runs(tmp_path / ending)) == 1


def test_names_do_not_join_jobs_of_other_sizes(tmp_path: Path) -> None:
    """A folder that was written over by a smaller job."""
    for rank in range(2):
        write(tmp_path / f"rank{rank}.json", trace(rank, 2, at_s=900))
    for rank in range(2, 4):
        write(tmp_path / f"rank{rank}.json", trace(rank, 4))
    assert runs(tmp_path) == [["rank0.json", "rank1.json"], ["rank2.json", "rank3.json"]]


def test_numbered_tasks_recorded_one_after_the_other_are_no_ranks(tmp_path: Path) -> None:
    for number in range(2):
        write(tmp_path / f"task{number}.json", trace(0, 1, at_s=100 * number))
        write(tmp_path / f"process{number}.json", trace(0, 1, at_s=0.1 * number))
    assert runs(tmp_path) == [["process0.json", "process1.json"], ["task0.json"], ["task1.json"]]


def test_a_header_behind_the_events_counts(tmp_path: Path) -> None:
    for rank in range(2):
        document = json.loads(trace(rank, 2))
        write(
            tmp_path / f"{WORDS[rank]}.json",
            json.dumps({"traceEvents": document.pop("traceEvents"), **document}).encode(),
        )
    assert load(tmp_path, cache=False).ranks == [0, 1]


def test_no_one_is_asked_to_copy_what_is_here(tmp_path: Path) -> None:
    """Rank 1 of the same job size is here, but was recorded an hour before."""
    write(tmp_path / "a.json", trace(0, 2, at_s=3600))
    write(tmp_path / "b.json", trace(1, 2))
    os.utime(tmp_path / "b.json", (1, 1))
    problems = load(tmp_path, cache=False).table("problems")
    row = next(row for row in problems.iter_rows(named=True) if row["code"] == "missing-ranks")
    assert "b.json (rank 1)" in row["detail"]
    assert "Copy" not in row["fix"]
    (tmp_path / "b.json").unlink()
    write(tmp_path / "c.json", trace(0, 2, at_s=1))
    problems = load(tmp_path, cache=False).table("problems")
    row = next(row for row in problems.iter_rows(named=True) if row["code"] == "missing-ranks")
    assert "Copy" in row["fix"]
