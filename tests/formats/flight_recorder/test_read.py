"""Dumps of the flight recorder as traces: both forms, several versions, and all that can be wrong with them."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

import stepscope
from stepscope.errors import UnreadableFile
from stepscope.formats import detect, read
from stepscope.formats.flight_recorder.document import Frame
from stepscope.formats.flight_recorder.own_frames import own_frame
from stepscope.formats.source import Source
from stepscope.profiles.load import load
from stepscope.trace.trace import Trace
from tests.builders.dumps import CREATED_NS, TORCH, dump, entry, hang, pending, put_dumps, usual

FIXTURES = Path(__file__).parents[2] / "fixtures" / "flight_recorder"


def read_dump(folder: Path, content: dict[str, Any], form: str = "pickle") -> Trace:
    put_dumps(folder, {3: content}, form)
    return read(Source(str(next(folder.glob("nccl*")))))


def codes(trace: Trace) -> list[str]:
    return trace.problems["code"].to_list()


@pytest.mark.parametrize("form", ["pickle", "json"])
def test_each_collective_is_a_span_of_its_group(tmp_path: Path, form: str) -> None:
    trace = read_dump(tmp_path, dump([*usual(3), pending("nccl:all_gather", 3)]), form)
    assert trace.info.format == "flight_recorder"
    assert trace.info.world_size == 4
    assert trace.info.base_unix_ns == CREATED_NS + 1_000_000 + 1000 - 1000
    assert trace.events["name"].to_list() == ["all_reduce", "all_reduce", "all_gather"]
    assert trace.events["source_category"].to_list() == ["nccl"] * 3
    assert trace.events["dur_ns"].to_list()[:2] == [4000, 4000]
    assert trace.tracks["thread"].to_list() == ["group default_pg (0)"]
    assert trace.collectives["sequence"].to_list() == [1, 2, 3]
    assert trace.collectives["elements"].to_list() == [1024] * 3
    assert trace.collectives["group_ranks"].to_list() == ["[0, 1, 2, 3]"] * 3
    about = trace.arguments(2)
    assert about["place"] == "/job/train.py:88"
    assert about["is_pending"] is True
    assert about["stack"].splitlines()[0] == f"all_gather ({TORCH}:3245)"
    assert codes(trace) == []


@pytest.mark.parametrize("version", ["2.0", "2.3", "2.7", "2.10"])
def test_versions(tmp_path: Path, version: str) -> None:
    """Older ones lack members that newer ones have."""
    old = {
        name: value
        for name, value in entry("nccl:all_reduce", 7).items()
        if name not in ("is_p2p", "op_id", "timeout_ms")
    }
    if version == "2.0":
        old["seq_id"] = old.pop("collective_seq_id")
    trace = read_dump(tmp_path, dump([old], version=version))
    assert trace.collectives["sequence"].to_list() == [7]
    assert trace.info.versions["flight_recorder"] == version


def test_sends_and_receives_have_two_ends(tmp_path: Path) -> None:
    rows = [
        pending("nccl:send 1->2", 1, is_p2p=True, p2p_seq_id=4),
        pending("nccl:recv 0<-3", 2, is_p2p=True, p2p_seq_id=5),
    ]
    trace = read_dump(tmp_path, dump(rows))
    ends = [(trace.arguments(row)["from_rank"], trace.arguments(row)["to_rank"]) for row in (0, 1)]
    assert sorted(ends) == [(1, 2), (3, 0)]


def test_an_empty_buffer_is_a_problem_of_the_trace(tmp_path: Path) -> None:
    trace = read_dump(tmp_path, dump([]))
    assert len(trace.events) == 0
    assert codes(trace) == ["empty-dump"]


def test_without_stacks(tmp_path: Path) -> None:
    bare = {name: value for name, value in entry("gloo:all_reduce", 1).items() if name != "frames"}
    assert codes(read_dump(tmp_path, dump([bare]))) == ["dump-without-stacks"]


def test_a_bad_entry_costs_itself(tmp_path: Path) -> None:
    bad: list[Any] = [
        {"profiling_name": 5},
        7,
        None,
        {"time_created_ns": "x", "profiling_name": "nccl:all_reduce"},
    ]
    trace = read_dump(tmp_path, dump([*usual(3), *bad]))
    assert len(trace.events) == 2
    assert trace.problems.select("code", "count").rows() == [("damaged-events", 4)]


@pytest.mark.parametrize(
    "changed",
    [
        {"input_sizes": [["x"]], "output_sizes": [None]},
        {"process_group": None},
        {"process_group": []},
        {"time_created_ns": None, "time_discovered_started_ns": None},
        {"time_created_ns": -5},
        {"time_created_ns": 1 << 63},
        {"profiling_name": ""},
        {"duration_ms": 1e300},
        {"frames": [{"name": "f", "filename": "<frozen>", "line": 1}]},
    ],
)
def test_odd_values_do_not_matter(tmp_path: Path, changed: dict[str, Any]) -> None:
    trace = read_dump(tmp_path, dump([*usual(3), pending("nccl:all_reduce", 3, **changed)]))
    assert len(trace.events) in (2, 3)


@pytest.mark.parametrize(
    "config", [None, 5, {"0": 7}, {"0": {"ranks": "no"}}, {"0": {"ranks": [1 << 70, "x", 2]}}]
)
def test_odd_groups_do_not_matter(tmp_path: Path, config: Any) -> None:
    assert len(read_dump(tmp_path, dump(usual(3), pg_config=config, pg_status=config)).events) == 2


def test_complete_entries_of_a_cut_document_are_kept(tmp_path: Path) -> None:
    whole = json.dumps({"entries": usual(9), "version": "2.10", "pg_config": {}}).encode()
    path = tmp_path / "nccl_trace_rank_0.json"
    path.write_bytes(whole[: len(whole) // 2])
    trace = read(Source(str(path)))
    assert 1 < len(trace.events) < 8
    assert codes(trace) == ["truncated"]


def test_a_cut_pickle_is_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "nccl_trace_rank_0"
    path.write_bytes(pickle.dumps(dump(usual()), protocol=2)[:-40])
    with pytest.raises(UnreadableFile, match="cut short"):
        read(Source(str(path)))


def test_other_ranks_are_read_without_it(tmp_path: Path) -> None:
    folder = put_dumps(tmp_path / "dumps", hang())
    path = folder / "nccl_trace_rank_1"
    path.write_bytes(path.read_bytes()[:-40])
    found = load(str(folder))
    assert found.ranks == [0, 2, 3]
    assert "unreadable-file" in found.problems["code"].to_list()


def test_a_pickle_that_names_code_is_refused(tmp_path: Path) -> None:
    class Call:
        def __reduce__(self) -> Any:
            return print, ("ran",)

    path = tmp_path / "nccl_trace_rank_0"
    path.write_bytes(pickle.dumps({"version": "2.10", "pg_config": {}, "entries": [Call()]}))
    with pytest.raises(UnreadableFile, match="never opened"):
        read(Source(str(path)))


def test_a_version_to_come_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match=r"version 3\.0"):
        read_dump(tmp_path, dump(usual(), version="3.0"))


def test_damaged_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b'{"pg_config": {"0": }')
    with pytest.raises(UnreadableFile, match="cut or damaged"):
        read(Source(str(path)))


def test_gzipped(tmp_path: Path) -> None:
    path = tmp_path / "nccl_trace_rank_2.json.gz"
    path.write_bytes(gzip.compress(json.dumps(dump(usual())).encode()))
    assert detect(Source(str(path))).name == "flight_recorder"
    assert len(read(Source(str(path))).events) == 4


def test_files_of_a_folder_are_the_ranks_of_one_run(tmp_path: Path) -> None:
    found = load(str(put_dumps(tmp_path / "dumps", hang())))
    assert found.ranks == [0, 1, 2, 3]


def test_the_last_number_of_a_name_is_the_rank(tmp_path: Path) -> None:
    """PyTorch appends it to any prefix."""
    put_dumps(tmp_path / "dumps", hang())
    for rank in range(4):
        (tmp_path / "dumps" / f"nccl_trace_rank_{rank}").rename(tmp_path / "dumps" / f"run7_fr{rank}")
    found = load(str(tmp_path / "dumps"))
    assert found.ranks == [0, 1, 2, 3]
    assert [trace.info.path[-1] for trace in found.traces] == list("0123")


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_pickles_of_every_protocol(tmp_path: Path, protocol: int) -> None:
    path = tmp_path / "nccl_trace_rank_0"
    path.write_bytes(pickle.dumps(dump(usual()), protocol=protocol))
    assert len(read(Source(str(path))).events) == 4


def test_other_pickles_are_others(tmp_path: Path) -> None:
    frames = [{"name": "pg_config", "filename": "a.py", "line": 1}]
    path = tmp_path / "snapshot"
    path.write_bytes(pickle.dumps({"weights": [], "others": [frames]}, protocol=4))
    with pytest.raises(UnreadableFile):
        detect(Source(str(path)))


def test_the_line_that_matters_is_the_users() -> None:
    installed = Frame("all_reduce", TORCH, 1)
    library = Frame("backward", "/venv/lib/python3.12/site-packages/deepspeed/engine.py", 2)
    own = Frame("step", "/job/train.py", 3)
    assert own_frame([installed, library, own]) is own
    assert own_frame([installed, library]) is library
    assert own_frame([installed]) is installed
    assert own_frame([]) is None


@pytest.mark.parametrize(
    ("name", "place"), [("nccl_2.10_timeout.pickle", " at train.py:12"), ("nccl_2.10_stuck.json", "")]
)
def test_dumps_of_nccl_itself(name: str, place: str) -> None:
    """What the watchdog of PyTorch 2.11 wrote at a time-out, and the JSON of the same hang."""
    found = stepscope.report(FIXTURES / name)
    assert found.hang.kind == "stuck"
    assert found.sentence.startswith(
        f"Rank 0, alone in group default_pg (0), called all_reduce{place}, and it does not complete"
    )
    waits = found.hang.ranks[0]
    assert (waits.state, waits.ranks) == ("waits", [0])
    trace = read(Source(str(FIXTURES / name)))
    names = trace.events.sort("start_ns")["name"].to_list()
    assert names == 3 * ["all_reduce", "broadcast", "all_gather", "_reduce_scatter_base"] + [
        "all_reduce",
        "broadcast",
    ]
