"""Event files of TensorBoard: those with a RunMetadata become a trace, others say what they are."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.errors import StepscopeError, UnreadableFile
from stepscope.formats.source import Source
from stepscope.formats.tf1 import FORMAT, event_file
from stepscope.formats.tf1.detect import matches
from stepscope.trace.finish import finish
from stepscope.trace.trace import Trace
from tests.builders.protobuf import message, varint
from tests.builders.tf_wire import CPU, GPU, VERSION, Held, T, event, node, record, traced

SAMPLE = Path(__file__).parents[2] / "fixtures" / "tf_events" / "events.out.tfevents.1794707819.vm"
CONTENT = SAMPLE.read_bytes()


def load(data: bytes) -> Trace:
    """The trace in these bytes."""
    return finish(FORMAT.read(Held(data), lambda _: None))


def rows(frame: pl.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """The columns, row by row."""
    return frame.select(columns).rows()


def problems(trace: Trace) -> dict[str, int]:
    """How often each problem was met."""
    return dict(rows(trace.problems, "code", "count"))


def test_a_recorded_file() -> None:
    """Two traced steps of a small training loop, recorded with TensorFlow 2.21 in graph mode.

    The sums were taken with TensorFlow's own classes.
    """
    trace = finish(FORMAT.read(Source(str(SAMPLE)), lambda _: None))
    assert trace.info.base_unix_ns == 1_794_707_819_411_692_009
    assert (trace.info.framework, trace.info.format, trace.info.host) == ("tensorflow", "tf-events", "vm")
    assert trace.info.devices == [{"name": CPU, "kind": "cpu", "id": 0}]
    steps = trace.events.filter(pl.col("role") == "step")
    assert rows(steps, "name", "start_ns", "dur_ns", "step") == [
        ("step1", 0, 172_292, 1),
        ("step2", 845_720, 118_196, 2),
    ]
    ops = trace.events.filter(pl.col("kind") == "op")
    assert (len(ops), ops["dur_ns"].sum()) == (50, 223_130)
    assert rows(ops.group_by("step").len().sort("step"), "step", "len") == [(1, 25), (2, 25)]
    matmul = ops.filter(pl.col("name") == "_MklMatMul").row(0, named=True)
    assert (matmul["start_ns"], matmul["dur_ns"], matmul["parent"]) == (41_147, 31_603, None)
    detail = trace.ops.filter(pl.col("event") == matmul["id"]).row(0, named=True)
    assert (detail["shapes"], detail["dtypes"], detail["scope"]) == (
        "[[16, 64]]",
        '["float32"]',
        "dense/MatMul",
    )
    assert detail["placement"] == CPU
    memory = trace.memory.filter(pl.col("event") == matmul["id"])
    assert rows(memory, "time_ns", "bytes", "allocator") == [
        (45_991, 4096, "mklcpu"),
        (140_991, -4096, "mklcpu"),
    ]
    assert len(trace.memory) == 32
    assert trace.arguments(matmul["id"])["op_end_ns"] > 0
    assert problems(trace) == {}


@pytest.mark.corpus
def test_the_file_of_the_corpus() -> None:
    corpus = os.environ.get("STEPSCOPE_CORPUS")
    if not corpus:
        pytest.skip("STEPSCOPE_CORPUS is not set")
    (path,) = (Path(corpus) / "tensorflow" / "tf1_run_metadata").iterdir()
    trace = finish(FORMAT.read(Source(str(path)), lambda _: None))
    ops = trace.events.filter(pl.col("kind") == "op")
    assert (len(ops), ops["dur_ns"].sum()) == (8, 18_874_254)
    assert trace.info.versions == {"event_file": "brain.Event:2", "tensorflow": "2.21.0"}
    assert rows(trace.tracks, "thread", "what") == [
        ("lane 0", "host"),
        ("lane 1", "host"),
        ("runs", "derived"),
    ]
    assert problems(trace) == {}


def test_ops_that_run_at_once_get_lanes_not_parents() -> None:
    nodes = [node("a", 0, 90, "a = A()"), node("b", 10, 20, "b = B(a)"), node("c", 95, 5, "c = C()")]
    trace = load(VERSION + traced("run", (CPU, nodes)))
    ops = trace.events.filter(pl.col("kind") == "op").join(trace.tracks, left_on="track", right_on="id")
    assert rows(ops, "name", "thread", "parent") == [
        ("A", "lane 0", None),
        ("C", "lane 0", None),
        ("B", "lane 1", None),
    ]


def test_threads_that_the_file_names() -> None:
    stats = message(
        (1, CPU),
        (2, node("a", 0, 9, "", (10, 7))),
        (2, node("b", 1, 2, "", (10, 7))),
        (3, message((1, 7), (2, "pool/7"))),
    )
    trace = load(VERSION + event((8, message((1, "r"), (2, message((1, message((1, stats)))))))))
    assert rows(trace.tracks, "thread", "tid") == [("pool/7", "7"), ("runs", None)]
    assert rows(trace.events, "name", "parent") == [("a", None), ("b", 0), ("r", None)]


def test_a_gpu() -> None:
    details = " regs:32 static_shared:16 dynamic_shared:4 grid:8,4,1 block:128,1,1 occ_pct:62.5"
    kernel = node("dense/MatMul:MatMul", 20, 30, f"void gemm<float>(int){details}")
    copy = node("x:Recv", 5, 4, "MemcpyH2D kind_src:pageable kind_dst:device size:4096 dest:0 async:1")
    fill = node("memset", 60, 1, "memset")
    wait = node("cuStreamSynchronize", 55, 9, "ThreadId 3", (10, 3))
    content = VERSION + traced(
        "run_3",
        (GPU, [node("dense/MatMul", 2, 3, "dense/MatMul = MatMul(x, w)"), node("dense/MatMul", 90, 3)]),
        ("/device:GPU:0/stream:7", [kernel]),
        ("/device:GPU:0/stream:9<MemcpyH2D>", [copy]),
        ("/device:GPU:0/stream:", [fill]),
        ("/device:GPU:0/stream:all", [kernel]),
        ("/device:GPU:0/memcpy", [copy]),
        ("/device:GPU:0/sync", [wait]),
    )
    trace = load(content)
    on = trace.events.join(trace.tracks, left_on="track", right_on="id", maintain_order="left")
    assert rows(on.sort("start_ns", "what"), "name", "kind", "thread", "stream", "what", "device") == [
        ("MatMul", "op", "lane 0", None, "host", None),
        ("run_3", "annotation", "runs", None, "derived", None),
        ("MemcpyH2D", "copy", "stream:9<MemcpyH2D>", 9, "device", 0),
        ("MemcpyH2D", "copy", "memcpy", None, "derived", 0),
        ("void gemm<float>(int)", "kernel", "stream:7", 7, "device", 0),
        ("void gemm<float>(int)", "kernel", "stream:all", None, "derived", 0),
        ("cuStreamSynchronize", "sync", "thread 3", None, "host", None),
        ("memset", "memset", "stream:", None, "device", 0),
        ("dense/MatMul", "op", "lane 0", None, "host", None),
    ]
    op = trace.events.filter(pl.col("name") == "MatMul")["id"][0]
    assert rows(trace.kernels, "grid", "block", "registers", "shared_bytes", "occupancy", "op") == [
        ([8, 4, 1], [128, 1, 1], 32, 20, 62.5, op)
    ]
    assert rows(trace.copies, "bytes", "direction", "source", "target") == [
        (4096, "HtoD", "pageable", "device")
    ]
    assert rows(trace.links, "from", "to", "why") == [(op, trace.kernels["event"][0], "launch")]
    assert {device["kind"] for device in trace.info.devices} == {"gpu"}


def test_a_summary_that_repeats_nothing_counts_as_a_device() -> None:
    trace = load(
        VERSION
        + traced("r", ("/gpu:0/stream:all", [node("k", 0, 5)]), ("/gpu:0/stream:3", [node("j", 0, 5)]))
    )
    assert rows(trace.tracks, "thread", "what") == [
        ("stream:all", "device"),
        ("stream:3", "device"),
        ("runs", "derived"),
    ]


def test_copies_of_tensorflow_1() -> None:
    trace = load(
        VERSION
        + traced(
            "r", ("/gpu:0/memcpy", [node("x:MEMCPYDtoH", 0, 5, "MEMCPYDtoH 12 bytes (Device to Pageable)")])
        )
    )
    assert rows(trace.copies, "bytes", "direction") == [(12, "DtoH")]


def test_nanoseconds_win_over_microseconds() -> None:
    exact = node("a", 0, 5, "", (13, T * 1000 + 7), (16, 5_432), (17, T * 1000 - 3))
    trace = load(VERSION + traced("r", (CPU, [node("b", 1, 2), exact])))
    assert rows(trace.events.filter(pl.col("kind") == "op"), "name", "start_ns", "dur_ns") == [
        ("a", 0, 5432),
        ("b", 993, 2000),
    ]
    assert trace.info.base_unix_ns == T * 1000 + 7
    assert trace.arguments(0)["scheduled_ns"] == -10


def test_memory_in_all_its_forms() -> None:
    listed = message(
        (1, "GPU_1_bfc"), (2, 64), (6, message((1, T + 1), (2, 64))), (6, message((1, T + 9), (2, -64)))
    )
    summed = message((1, "gpu_host_bfc"), (2, 100), (3, 80), (4, 30), (5, 7000))
    nodes = [
        node("listed", 0, 5, "", (6, listed), (12, message((1, 48)))),
        node("summed", 10, 5, "", (6, summed)),
        node("temporary", 20, 5, "", (12, message((1, 16), (3, 8)))),
        node("absurd", 30, 5, "", (6, message((6, message((1, 2**62), (2, 1)))))),
    ]
    trace = load(VERSION + traced("r", (CPU, nodes)))
    assert rows(trace.memory.sort("time_ns"), "device_kind", "device", "allocator", "time_ns", "bytes") == [
        ("gpu", 1, "GPU_1_bfc", 1_000, 64),
        ("gpu", 1, "GPU_1_bfc", 9_000, -64),
        ("cpu", 0, "gpu_host_bfc", 10_000, 100),
        ("cpu", 0, "gpu_host_bfc", 15_000, -70),
        ("cpu", 0, None, 20_000, 16),
        ("cpu", 0, None, 25_000, -16),
    ]
    assert trace.arguments(2)["persistent_bytes"] == 8
    assert trace.arguments(1)["allocator_bytes_in_use"] == 7000
    assert problems(trace) == {"bad-allocations": 1}


def test_shapes_and_types() -> None:
    def output(dtype: int, shape: bytes) -> tuple[int, bytes]:
        return 7, message((1, 0), (3, message((1, dtype), (2, shape))))

    shapes = [message((2, message((1, 3))), (2, message((1, -1)))), message((3, 1)), b""]
    many = node(
        "a", 0, 5, "", *(output(kind, shape) for kind, shape in zip((14, 101, 99), shapes, strict=True))
    )
    trace = load(VERSION + traced("r", (CPU, [many])))
    assert rows(trace.ops, "shapes", "dtypes") == [
        ("[[3, -1], null, []]", '["bfloat16","float32","type 99"]')
    ]


def test_run_metadata_of_tensorflow_2() -> None:
    stats = message((1, message((1, message((1, CPU), (2, node("a", 0, 5)))))))
    value = message(
        (1, "f"), (8, message((1, 7), (8, stats))), (9, message((1, message((1, "graph_run_metadata")))))
    )
    trace = load(VERSION + event((2, 41), (5, message((1, value)))))
    assert rows(trace.events, "name", "kind", "step") == [("a", "op", 41), ("f", "annotation", 41)]


def test_times_that_cannot_be() -> None:
    nodes = [
        node("good", 0, 5),
        message((1, "none")),
        message((1, "far"), (2, 2**62)),
        message((1, "long"), (13, T), (16, 2**63 - 1)),
    ]
    trace = load(VERSION + traced("r", (CPU, [*nodes, node("backwards", 9, -4)])))
    assert rows(trace.events.filter(pl.col("kind") == "op"), "name", "dur_ns") == [
        ("good", 5000),
        ("backwards", 0),
    ]
    assert problems(trace) == {"untimed-events": 1, "time-out-of-range": 2, "negative-duration": 1}


def test_nothing_but_times_that_cannot_be() -> None:
    trace = load(VERSION + traced("r", (CPU, [message((1, "none"))])))
    assert len(trace.events) == 0
    assert problems(trace) == {"untimed-events": 1}


def test_hostile_names_stay_names() -> None:
    trace = load(
        VERSION
        + traced("<script>", (CPU, [node("\x00\x1b[31m</script>", 0, 5), message((1, b"\xff\xfe"), (2, T))]))
    )
    assert set(trace.events["name"].cast(pl.String)) == {"<script>", "\x00\x1b[31m</script>", "��"}


REFUSALS = {
    "only a version": (VERSION, "is a TensorBoard event file without a profile: 1 event."),
    "scalars": (
        VERSION + event((5, message((1, message((1, "loss")))))) * 2 + event((4, b"graph")),
        "is a TensorBoard event file without a profile: 4 events (2 summaries, 1 graph).",
    ),
    "no times": (
        VERSION + traced("first") + traced("second"),
        "is a TensorBoard event file whose RunMetadata (first, second) has no times: 3 events.",
    ),
    "cut": (
        (VERSION + event((5, b"x" * 99)))[:-50],
        "is a TensorBoard event file without a profile: 1 event (1 summary)."
        " It is cut short, so that a profile may be in the part that is lost.",
    ),
    "a stub": (
        VERSION[:11],
        "is a TensorBoard event file without a single whole event."
        " It is cut short, so that a profile may be in the part that is lost.",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_files_without_a_profile_say_what_they_are(case: str) -> None:
    content, expected = REFUSALS[case]
    source = Held(content)
    assert matches(content, source.name)
    with pytest.raises(UnreadableFile) as caught:
        FORMAT.read(source, lambda _: None)
    assert caught.value.what == f"{source.path} {expected}"
    assert caught.value.fix is not None
    assert "add_run_metadata" in caught.value.fix or caught.value.fix == "Copy or record the file again."


def test_matching_by_content() -> None:
    assert matches(CONTENT[:65536], "anything.bin")
    assert matches(event((3, "something else")), "anything.bin")
    assert not matches(record(message((1, b"features"))), "train.tfrecord")
    assert not matches(b'{"traceEvents": []}', "events.out.tfevents.1.host")
    assert not matches(b"", "events.out.tfevents.1.host")
    assert not matches(b"short", "trace.json")


def test_a_packed_file(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1.box.example.12.0.v2.gz"
    path.write_bytes(gzip.compress(CONTENT))
    told: list[int] = []
    draft = FORMAT.read(Source(str(path)), told.append)
    assert len(draft.events) == 52
    assert told == [path.stat().st_size]


def events_or_error(data: bytes) -> int:
    """How many events are in the bytes; none if they are refused in words."""
    try:
        return len(FORMAT.read(Held(data), lambda _: None).events)
    except StepscopeError:
        return 0


def test_a_file_cut_at_any_byte_keeps_what_is_whole() -> None:
    nodes = [node(f"n{i}", 10 * i, 5, f"n{i} = Op()") for i in range(4)]
    content = VERSION + traced("one", (CPU, nodes[:2])) + traced("two", (CPU, nodes[2:]))
    counts = [events_or_error(content[:size]) for size in range(len(content) + 1)]
    assert counts == sorted(counts)
    assert sorted(set(counts)) == [0, 2, 3, 5, 6]
    trace = load(content[:-20])
    assert rows(trace.events, "name", "kind") == [
        ("Op", "op"),
        ("Op", "op"),
        ("Op", "op"),
        ("one", "annotation"),
        ("two", "annotation"),
    ]
    assert problems(trace) == {"truncated": 1}


def test_the_recorded_file_cut_at_many_bytes() -> None:
    counts = [events_or_error(CONTENT[:size]) for size in range(0, len(CONTENT), 53)]
    assert counts == sorted(counts)
    assert len(set(counts)) > 40


@given(
    places=st.lists(st.tuples(st.integers(0, len(CONTENT) - 1), st.integers(1, 255)), min_size=1, max_size=8)
)
def test_flipped_bytes(places: list[tuple[int, int]]) -> None:
    data = bytearray(CONTENT)
    for at, change in places:
        data[at] ^= change
    try:
        trace = load(bytes(data))
    except StepscopeError:
        return
    assert len(trace.problems) > 0 or bytes(data) == CONTENT


@given(data=st.binary(max_size=300))
def test_any_bytes_as_a_run(data: bytes) -> None:
    for content in (data, VERSION + event((8, data)), VERSION + event((8, message((1, "r"), (2, data))))):
        events_or_error(content)


@given(data=st.binary(max_size=120))
def test_any_bytes_as_a_node(data: bytes) -> None:
    load(
        VERSION
        + traced(
            "r",
            (CPU, [node("good", 0, 5), data, message((1, "n"), (2, T), (6, data), (7, data), (12, data))]),
        )
    )


@given(numbers=st.dictionaries(st.integers(2, 17), st.integers(-(2**63), 2**63 - 1), max_size=8))
def test_any_numbers_in_a_node(numbers: dict[int, int]) -> None:
    used = message(
        (2, numbers.get(2, 0)),
        (4, numbers.get(4, 0)),
        (6, message((1, numbers.get(3, 0)), (2, numbers.get(5, 0)))),
    )
    trace = load(
        VERSION + traced("r", (CPU, [node("good", 0, 5), message((1, "n"), *numbers.items(), (6, used))]))
    )
    assert "good" in trace.events["name"].cast(pl.String)


def test_more_nodes_than_any_run_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_file, "MOST_NODES", 5)
    three = traced("r", (CPU, [node(f"n{i}", 10 * i, 5) for i in range(3)]))
    assert problems(load(VERSION + three)) == {}
    trace = load(VERSION + three * 2)
    assert len(trace.events.filter(pl.col("kind") == "op")) == 5
    assert trace.problems.row(0)[:4] == (
        "too-many-events",
        "warning",
        "The event file has more nodes than any traced run",
        "Only the first 5 nodes were read.",
    )


@pytest.mark.parametrize("level", range(5))
def test_bombs(level: int) -> None:
    """A long run of tiny fields, at each depth that is read, ends in a short while and in little memory."""
    bomb = b"\x12\x00" * 50_000 + b"\x0a" + varint(2**63) + b"\xff" * 50
    for number in ((8,), (8, 2), (8, 2, 1), (8, 2, 1, 1), (8, 2, 1, 1, 2))[level][::-1]:
        bomb = message((number, bomb))
    content = VERSION + traced("good", (CPU, [node("a", 0, 5)])) + record(message((1, 1.0)) + bomb)
    assert "a" in load(content).events["name"].cast(pl.String)
