"""Who wrote a Chrome trace, and what its names say of devices: JAX, VizTracer, TensorFlow's timelines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stepscope.formats import read
from stepscope.formats.source import Source
from stepscope.trace.trace import Trace
from tests.builders.documents import chrome, codes, event, links, named
from tests.formats.ways import Way

JAX = Path(__file__).parents[2] / "fixtures" / "jax" / "plugins" / "profile"


def process(pid: int, name: str, **threads: str) -> list[dict[str, Any]]:
    """Metadata: the name of a process, and of threads (`t5="main"`)."""
    named_threads = [
        {"ph": "M", "name": "thread_name", "pid": pid, "tid": int(tid[1:]), "args": {"name": text}}
        for tid, text in threads.items()
    ]
    return [{"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}, *named_threads]


def devices(trace: Trace) -> dict[str, tuple[Any, ...]]:
    """By the name of an event: the use of its track, the device, the stream and the event's kind."""
    shown = ["name", "what", "device_kind", "device", "stream", "kind"]
    rows = trace.events.join(trace.tracks, left_on="track", right_on="id").select(shown).rows()
    return {row[0]: row[1:] for row in rows}


def test_the_twin_that_jax_writes_beside_its_xplane() -> None:
    (path,) = JAX.rglob("*.trace.json.gz")
    trace = read(Source(str(path)))
    assert (trace.info.format, trace.info.framework) == ("chrome", "jax")
    assert dict(trace.events.group_by("kind").len().iter_rows()) == {
        "annotation": 4, "copy": 8, "kernel": 120, "python": 563, "span": 337
    }  # fmt: skip
    streams = (
        trace.tracks.filter(pl.col("what") == "device")
        .select("device_kind", "device", "stream")
        .sort("stream")
    )
    assert streams.rows() == [("gpu", 0, 14), ("gpu", 0, 15)]
    markers = trace.events.filter(pl.col("role") == "step").sort("start_ns")
    assert markers.select("name", "step").rows() == [("train", 0), ("train", 1), ("train", 2), ("train", 3)]


@pytest.mark.parametrize(
    ("ran", "on_device", "is_missing"),
    [
        ("PjRtCApiLoadedExecutable::Execute", False, True),
        ("PjRtStreamExecutorLoadedExecutable::Execute", False, True),
        ("PjRtCApiLoadedExecutable::Execute", True, False),
        ("PjRtCpuExecutable::Execute", False, False),
    ],
)
def test_programs_on_an_accelerator_of_which_nothing_was_recorded(
    way: Way, ran: str, on_device: bool, is_missing: bool
) -> None:
    work = [event(None, "fusion", 5, 5, pid=1, tid=14)] if on_device else []
    trace = way(
        chrome(
            *process(1, "/device:GPU:0", t14="Stream #14(Compute)"),
            *process(9, "/host:CPU", t5="python3"),
            event(None, ran, 0, 5, pid=9, tid=5),
            *work,
        )
    )
    assert ("no-device-events" in codes(trace)) is is_missing


def test_streams_of_a_device_and_what_lies_over_them(way: Way) -> None:
    trace = way(
        chrome(
            *process(1, "/device:GPU:0", t14="Stream #14(Compute,MemcpyD2D)", t2="XLA Ops", t3="Steps"),
            *process(2, "/device:TPU:3", t1="XLA Ops", t2="XLA Modules", t4="Steps"),
            *process(9, "/host:CPU", t5="python3"),
            event(None, "fusion", 0, 5, pid=1, tid=14),
            event(None, "MemcpyD2D", 6, 1, pid=1, tid=14),
            event(None, "Memset", 8, 1, pid=1, tid=14),
            event(None, "fusion.1", 0, 5, pid=1, tid=2),
            event(None, "train 3", 0, 5, pid=1, tid=3, args={"step_num": "3"}),
            event(None, "dot", 0, 5, pid=2, tid=1),
            event(None, "jit_step", 0, 9, pid=2, tid=2),
            event(None, "$train.py:3 step", 0, 9, pid=9, tid=5),
        )
    )
    assert devices(trace) == {
        "fusion": ("device", "gpu", 0, 14, "kernel"),
        "MemcpyD2D": ("device", "gpu", 0, 14, "copy"),
        "Memset": ("device", "gpu", 0, 14, "memset"),
        "fusion.1": ("derived", "gpu", 0, None, "scope"),
        "train 3": ("derived", "gpu", 0, None, "annotation"),
        "dot": ("device", "tpu", 3, None, "kernel"),
        "jit_step": ("derived", "tpu", 3, None, "scope"),
        "$train.py:3 step": ("host", "cpu", None, None, "python"),
    }


@pytest.mark.parametrize("category", ["FEE", "fee"])
def test_viztracer(way: Way, category: str) -> None:
    trace = way(
        chrome(
            {"ph": "M", "pid": 7, "tid": 7, "name": "process_name", "args": {"name": "MainProcess"}},
            {"ph": "M", "pid": 7, "tid": 8, "name": "thread_name", "args": {"name": "MainThread"}},
            event(category, "main (a.py:1)", 14606479869.789, 1576.5, pid=7, tid=8),
            event(category, "f (a.py:9)", 14606479870.1, 3.25, pid=7, tid=8, args={"func_args": {"x": "1"}}),
            {"ph": "i", "s": "g", "name": "log", "pid": 7, "tid": 8, "ts": 14606479871, "args": {"m": "hi"}},
            viztracer_metadata={
                "version": "1.1.1",
                "overflow": True,
                "baseTimeNanoseconds": 1700000000123456789,
            },
            file_info={"files": {"a.py": ["…", 10]}, "functions": {"main (a.py:1)": ["a.py", 1]}},
        )
    )
    info = trace.info
    assert (info.framework, info.versions, info.base_unix_ns) == (
        "python",
        {"viztracer": "1.1.1"},
        1700000000123456789,
    )
    assert named(trace, "f (a.py:9)") | {"kind": "python", "depth": 1, "dur_ns": 3_250} == named(
        trace, "f (a.py:9)"
    )
    assert trace.arguments(named(trace, "f (a.py:9)")["id"]) == {"func_args": {"x": "1"}}
    assert codes(trace) == {"buffer-overflow": 1}


def test_tensorflow_timeline(way: Way) -> None:
    job = "/job:localhost/replica:0/task:0"
    trace = way(
        chrome(
            *process(1, f"{job}/device:CPU:0 Compute"),
            *process(3, f"{job}/device:GPU:0 Compute"),
            *process(5, "/device:GPU:0/stream:7 Compute"),
            *process(7, "/device:GPU:0/stream:all Compute"),
            event("Op", "Const", 0, 2, pid=1, tid=0, args={"name": "w", "op": "Const"}),
            event("Op", "MatMul", 3, 2, pid=3, tid=0, args={"name": "mm", "op": "MatMul", "input0": "w"}),
            event("Op", "sgemm", 6, 9, pid=5, tid=0, args={"name": "mm", "op": "MatMul"}),
            event("Op", "sgemm all", 6, 9, pid=7, tid=0),
            {"ph": "s", "cat": "DataFlow", "name": "w", "pid": 1, "tid": 0, "ts": 1, "id": 0},
            {"ph": "t", "cat": "DataFlow", "name": "w", "pid": 3, "tid": 0, "ts": 3, "id": 0},
            {
                "ph": "C",
                "cat": "Memory",
                "name": "Memory",
                "pid": 1,
                "ts": 2,
                "args": {"cpu": 1024, "gpu": 0},
            },
            {"ph": "N", "cat": "Tensor", "name": "w", "id": 4, "pid": 2, "tid": 0, "ts": 1},
            {
                "ph": "O",
                "cat": "Tensor",
                "name": "w",
                "id": 4,
                "pid": 2,
                "tid": 0,
                "ts": 1,
                "args": {"snapshot": {}},
            },
            {"ph": "D", "cat": "Tensor", "name": "w", "id": 4, "pid": 2, "tid": 0, "ts": 9},
        )
    )
    assert trace.info.framework == "tensorflow"
    found = devices(trace)
    assert found["Const"][::4] == ("host", "op")
    assert found["MatMul"][::4] == ("host", "op")
    assert found["sgemm"] == ("device", "gpu", 0, 7, "kernel")
    assert found["sgemm all"] == ("derived", "gpu", 0, None, "scope")
    assert links(trace) == [("Const", "MatMul", "flow")]
    assert trace.counters["value"].to_list() == [1024.0, 0.0]
    assert trace.arguments(named(trace, "MatMul")["id"]) == {"name": "mm", "op": "MatMul", "input0": "w"}
    assert codes(trace) == {}


@pytest.mark.parametrize("number", [3, "3"])
def test_step_numbers(way: Way, number: Any) -> None:
    trace = way(chrome(event(None, "train", 0, 9, args={"step_num": number}), event(None, "in it", 2, 1)))
    assert named(trace, "in it")["step"] == 3
    assert named(trace, "train")["role"] == "step"


@pytest.mark.parametrize("number", ["²", "x", -1, None, [3], 10**12, True])
def test_what_is_no_step_number(way: Way, number: Any) -> None:
    trace = way(chrome(event(None, "train", 0, 9, args={"step_num": number})))
    assert trace.events["step"].to_list() == [None]
    assert trace.arguments(0) == {"step_num": number}
