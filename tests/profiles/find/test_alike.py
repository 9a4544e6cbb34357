"""Files that do not say their rank, under names that say nothing, are joined by what their processes did."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from stepscope.profiles.find.catalog import scan
from stepscope.profiles.load import load
from tests.builders.files import write
from tests.profiles.find.test_joined import CORPUS, SECOND_US, runs


def trace(pid: int, at_s: float = 0, ops: str = "linear relu", exchange: str = "c10d::allreduce_") -> bytes:
    """A recording of one process: twenty ops, and an exchange with others at the end."""
    names = [*(f"aten::{name}" for name in ops.split() * 10), *([exchange] if exchange else [])]
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": pid, "tid": pid, "ts": 1e6 + SECOND_US * at_s + place, "dur": 1}
        for place, name in enumerate(names)
    ]  # fmt: skip
    return json.dumps({"baseTimeNanoseconds": 1_790_857_026_000_000_000, "traceEvents": events}).encode()


def test_processes_that_did_the_same_are_ranks(tmp_path: Path) -> None:
    for place, name in enumerate(["left.json", "right.json.gz", "middle.json"]):
        write(tmp_path / name, trace(70 + place, at_s=0.1 * place))
    assert runs(tmp_path) == [["left.json", "middle.json", "right.json.gz"]]
    assert load(tmp_path, cache=False).ranks == [0, 1, 2]
    assert len(scan([tmp_path / "left.json", tmp_path / "middle.json"]).runs) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"pid": 70},
        {"at_s": 60},
        {"ops": "linear gelu"},
        {"exchange": ""},
    ],
    ids=["the same process", "later", "another program", "alone"],
)
def test_other_files_stay_apart(tmp_path: Path, other: dict[str, Any]) -> None:
    write(tmp_path / "left.json", trace(70))
    write(tmp_path / "right.json", trace(**({"pid": 71} | other)))
    assert runs(tmp_path) == [["left.json"], ["right.json"]]


def test_a_sweep_is_no_job_of_several_ranks(tmp_path: Path) -> None:
    for place in range(3):
        write(tmp_path / f"{'abc'[place]}.json", trace(70 + place, exchange=""))
    assert len(runs(tmp_path)) == 3


def test_other_folders_are_other_jobs(tmp_path: Path) -> None:
    write(tmp_path / "a/x.json", trace(70))
    write(tmp_path / "b/y.json", trace(71))
    assert len(runs(tmp_path)) == 2


def test_damage_joins_nothing(tmp_path: Path) -> None:
    write(tmp_path / "a.json", trace(70))
    write(tmp_path / "b.json", trace(71)[:300])
    (tmp_path / "c.json.gz").write_bytes(b"\x1f\x8b" + bytes(40))
    assert all(len(run) == 1 for run in runs(tmp_path))


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS, reason="wants STEPSCOPE_CORPUS")
def test_real_ranks_without_a_word_of_their_job(tmp_path: Path) -> None:
    corpus = Path(CORPUS) / "public" / "dlrm_8ranks"
    for name, file in zip(("red", "green", "blue"), sorted(corpus.glob("worker*.gz")), strict=False):
        text = gzip.decompress(file.read_bytes()).replace(b'"distributedInfo"', b'"otherInfo"')
        (tmp_path / f"{name}.pt.trace.json").write_bytes(text)
    assert runs(tmp_path) == [["blue.pt.trace.json", "green.pt.trace.json", "red.pt.trace.json"]]
