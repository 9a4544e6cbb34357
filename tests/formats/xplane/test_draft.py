"""XPlane: planes, lines, events and stats as a trace."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stepscope.errors import StepscopeError
from stepscope.formats.xplane.detect import matches
from tests.builders.documents import codes
from tests.builders.files import load
from tests.builders.protobuf import number, packed
from tests.builders.xspace_bytes import PlaneBytes, Ref, Unsigned, space


def rows(frame: pl.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """The columns as rows of plain values."""
    return frame.select(pl.col(columns)).rows()


def environment(start: int = 1_700_000_000_000_000_000) -> PlaneBytes:
    """The plane that says when the session was."""
    plane = PlaneBytes("Task Environment")
    plane.fact("profile_start_time", Unsigned(start))
    plane.fact("profile_stop_time", Unsigned(start + 5))
    plane.fact("profile_options", number(2, 2) + number(3, 1) + packed(10, "runs") + packed(12, b"\x0a\x00"))
    return plane


def test_times_names_and_tracks(tmp_path: Path) -> None:
    host = PlaneBytes("/host:CPU")
    host.fact("process_id", 42)
    host.line(
        "python", [host.event("outer", 1_500, 10_000), host.event("long name", 2_500, 999, "short")], 7, 1_000
    )
    host.line("worker/9", [host.event("outer", 0, 0)], 9, 500, display="Worker")
    trace = load(space(host, environment(), hosts=["box"]), tmp_path)
    assert rows(trace.events, "track", "name", "start_ns", "dur_ns", "depth") == [
        (0, "outer", 1_002, 10, 0),
        (0, "short", 1_003, 0, 1),
        (1, "outer", 500, 0, 0),
    ]
    assert rows(trace.tracks, "process", "thread", "what", "device_kind", "pid", "tid") == [
        ("/host:CPU", "python", "host", "cpu", "42", "7"),
        ("/host:CPU", "Worker", "host", "cpu", "42", "9"),
    ]
    assert set(trace.events["source_category"]) == {"/host:CPU"}
    info = trace.info
    assert (info.format, info.host, info.base_unix_ns) == ("xplane", "box", 1_700_000_000_000_000_000)
    assert info.capture_options == {
        "host_tracer_level": 2,
        "device_tracer_level": 1,
        "repository_path": "runs",
        "duration_ns": 5,
    }
    assert codes(trace) == {}


def test_lines_that_tell_the_time_of_day(tmp_path: Path) -> None:
    host = PlaneBytes("/host:CPU")
    host.line("a", [host.event("x", 2_000)], time_ns=1_600_000_000_000_000_100)
    host.line("b", [host.event("x", 0)], time_ns=1_600_000_000_000_000_000)
    trace = load(space(host, environment()), tmp_path)
    assert trace.info.base_unix_ns == 1_600_000_000_000_000_000
    assert trace.events["start_ns"].to_list() == [102, 0]


def test_packed_content_is_the_same(tmp_path: Path) -> None:
    host = PlaneBytes("/host:CPU")
    host.line("t", [host.event("x", i * 1_000, 500, text=Ref("said"), n=i) for i in range(50)])
    plain, zipped = (
        load(space(host), tmp_path),
        load(gzip.compress(space(host)), tmp_path, "host.xplane.pb.gz"),
    )
    assert plain.events.equals(zipped.events)


def test_arguments_keep_every_type(tmp_path: Path) -> None:
    host = PlaneBytes("/host:CPU")
    stats: dict[str, Any] = {
        "i": -3,
        "u": Unsigned((1 << 64) - 1),
        "f": 0.5,
        "s": "text",
        "r": Ref("referred"),
        "b": b"\1\2",
    }
    host.line(
        "t",
        [
            host.event("plain"),
            host.event("x", 1_000, 0, "", None, **stats, _p=Unsigned((1 << 64) - 2), _pt=3),
        ],
    )
    host.describe("plain", flops=12, source="model.py:3")
    trace = load(space(host), tmp_path)
    assert trace.arguments(1) == {
        "i": -3, "u": (1 << 64) - 1, "f": 0.5, "s": "text", "r": "referred", "b": b"\1\2", "_p": (1 << 64) - 2, "_pt": 3,
    }  # fmt: skip
    assert trace.arguments(0) == {"flops": 12, "source": "model.py:3"}


def test_names_that_carry_their_arguments(tmp_path: Path) -> None:
    host = PlaneBytes("/host:CPU")
    host.line("t", [host.event(f"train#step_num={i},note=a b#", i * 10_000, 9_000) for i in (3, 4)])
    host.line("u", [host.event("#hash", 0), host.event("a#b#", 0)])
    trace = load(space(host), tmp_path)
    assert rows(trace.events, "name", "role", "step")[:2] == [("train", "step", 3), ("train", "step", 4)]
    assert trace.arguments(0) == {"step_num": 3, "note": "a b"}
    assert trace.events["name"].to_list()[2:] == ["#hash", "a#b#"]


def test_kinds_on_the_host(tmp_path: Path) -> None:
    host = PlaneBytes("/host:CPU")
    expected: dict[str, tuple[str, dict[str, Any]]] = {
        "$train.py:12 loop": ("python", {}),
        "MemoryAllocation": ("memory", {}),
        "cuLaunchKernel": ("runtime", {"correlation_id": 1}),
        "nvjet_gemm": ("runtime", {"correlation_id": 2}),
        "cuStreamSynchronize": ("sync", {"correlation_id": 3}),
        "BUFFER_FLUSH": ("overhead", {}),
        "train": ("annotation", {"step_num": 1, "_r": 1}),
        "fusion.1": ("op", {"hlo_op": "fusion.1"}),
        "ThreadpoolListener::Record": ("span", {}),
    }
    host.line("t", [host.event(name, 0, 1, **stats) for name, (_, stats) in expected.items()])
    host.line(
        "u",
        [
            host.event("model/dense/MatMul:MatMul", 0, 1, "MatMul"),
            host.event("HLO Passes:jit_f", 0, 1, "jit_f"),
        ],
    )
    trace = load(space(host), tmp_path)
    kinds = dict(rows(trace.events, "name", "kind"))
    assert {name: kinds[name] for name in expected} == {name: kind for name, (kind, _) in expected.items()}
    assert (kinds["MatMul"], kinds["jit_f"]) == ("op", "span")
    scopes = dict(
        rows(trace.ops.join(trace.events.select(event="id", name="name"), on="event"), "name", "scope")
    )
    assert scopes == {"MatMul": "model/dense/MatMul", "fusion.1": "fusion.1"}


def test_annotations_of_the_user(tmp_path: Path) -> None:
    host = PlaneBytes("/host:CPU")
    spans: list[tuple[str, int, int, dict[str, Any]]]
    spans = [("train", 0, 100, {"step_num": 0, "_r": 1}), ("make_batch", 1, 40, {}), ("tokenize", 2, 10, {})]
    spans += [("PjitFunction(f)", 50, 40, {}), ("call-inliner", 51, 5, {}), ("$a.py:1 f", 2, 20, {})]
    host.line(
        "python", [host.event(name, at * 1_000, dur * 1_000, **stats) for name, at, dur, stats in spans]
    )
    host.line("pool", [host.event("make_batch", 0, 1_000)])
    trace = load(space(host), tmp_path)
    found = trace.events.filter((pl.col("kind") == "annotation") & (pl.col("track") == 0))["name"].to_list()
    assert sorted(found) == ["make_batch", "tokenize", "train"]


def test_steps_are_counted_once(tmp_path: Path) -> None:
    host = PlaneBytes("/host:CPU")
    steps = [host.event("train", i * 10_000, 9_000, step_num=i, _r=1) for i in range(3)]
    inner = [host.event("train", i * 10_000 + 100, 500, step_num=i, _r=1) for i in range(3)]
    host.line("python", steps + inner)
    tpu = PlaneBytes("/device:TPU:0")
    tpu.line("Steps", [tpu.event(str(i), i * 10_000, 9_000) for i in range(3)])
    tpu.line("XLA Ops", [tpu.event("fusion", 1_000, 3_000)])
    trace = load(space(host, tpu), tmp_path)
    markers = trace.events.filter(pl.col("role") == "step")
    assert rows(markers, "track", "step", "dur_ns") == [(0, 0, 9), (0, 1, 9), (0, 2, 9)]
    alone = load(space(tpu), tmp_path)
    assert rows(alone.events.filter(pl.col("role") == "step"), "name", "step") == [
        ("0", 0),
        ("1", 1),
        ("2", 2),
    ]


def test_keras_names_its_batches(tmp_path: Path) -> None:
    host = PlaneBytes("/host:CPU")
    host.line("python", [host.event("Profiled batch", i * 10_000, 9_000, step_num=i) for i in (4, 5)])
    assert load(space(host), tmp_path).events["step"].to_list() == [4, 5]
    old = PlaneBytes("/host:CPU")
    old.line("python", [old.event(f"train {i}", i * 10_000, 9_000) for i in (4, 5)])
    trace = load(space(old), tmp_path)
    assert rows(trace.events, "role", "step") == [("step", 4), ("step", 5)]


def test_aggregates_count_and_do_not_span(tmp_path: Path) -> None:
    host = PlaneBytes("/host:CPU")
    host.line("t", [host.event("sum", None, 9_000_000, times=12), host.event("x", 1_000, 2_000)], time_ns=5)
    trace = load(space(host), tmp_path)
    assert rows(trace.events, "name", "kind", "start_ns", "dur_ns") == [
        ("sum", "instant", 5, 0),
        ("x", "span", 6, 2),
    ]
    assert trace.arguments(0) == {"num_occurrences": 12, "duration_ps": 9_000_000}


def test_producers_and_consumers(tmp_path: Path) -> None:
    host = PlaneBytes("/host:CPU")
    host.line("a", [host.event("make", at * 1_000, 0, _p=7, _pt=15) for at in (0, 10)])
    host.line("b", [host.event("take", at * 1_000, 0, _c=Unsigned(7), _ct=15) for at in (5, 15)])
    host.line("c", [host.event("other", 20_000, 0, _c=7, _ct=14)])
    trace = load(space(host), tmp_path)
    assert rows(trace.links, "from", "to", "why") == [
        (0, 2, "producer-consumer"),
        (1, 3, "producer-consumer"),
    ]


def test_an_empty_line_and_no_names(tmp_path: Path) -> None:
    plane = (
        packed(2, "/host:CPU")
        + packed(3, number(1, 5))
        + packed(3, packed(4, number(1, 9) + number(3, 2_000)))
    )
    trace = load(packed(1, plane), tmp_path)
    assert rows(trace.tracks, "thread") == [("thread 5",), ("thread 0",)]
    assert rows(trace.events, "track", "name", "dur_ns") == [(1, "event #9", 2)]


def test_broken_text_is_kept(tmp_path: Path) -> None:
    name = packed(4, number(1, 1) + packed(2, number(1, 1) + packed(2, b"<b>\xff\0name")))
    plane = packed(2, "/host:CPU") + packed(3, packed(4, number(1, 1))) + name
    assert load(packed(1, plane), tmp_path).events["name"].to_list() == ["<b>�\0name"]


def test_programs_are_kept(tmp_path: Path) -> None:
    facts = PlaneBytes("/host:metadata")
    facts.fact("jax_version", "0.11.2")
    programs: list[dict[str, Any]] = [
        {"Hlo Proto": b"\x0a\x00"},
        {"Hlo Proto": b"\x0a\x01", "program_id": 99},
        {"Hlo Proto": packed(1, packed(1, "inner"))},
    ]
    facts.describe("jit_f(12)", **programs[0])
    facts.describe("jit_g", **programs[1])
    facts.describe("no program", note=1)
    facts.describe("", **programs[2])
    trace = load(space(facts), tmp_path)
    assert rows(trace.modules, "name", "program_id", "hlo") == [
        ("jit_f", 12, b"\x0a\x00"),
        ("jit_g", 99, b"\x0a\x01"),
        ("inner", 4, packed(1, packed(1, "inner"))),
    ]
    assert (trace.info.framework, trace.info.versions) == ("jax", {"jax": "0.11.2"})


def test_the_recorder_complains(tmp_path: Path) -> None:
    data = space(
        PlaneBytes("/host:CPU"),
        errors=["no CUPTI"],
        warnings=["1,234 events dropped because of limits", "slow"],
    )
    trace = load(data, tmp_path)
    assert codes(trace) == {"capture-error": 1, "dropped-events": 1_234, "capture-warning": 1}
    two = load(space(PlaneBytes("/host:CPU"), errors=["no CUPTI", "no memory\nat all"]), tmp_path)
    assert rows(two.problems, "title", "detail") == [
        ("The profiler reported an error: no CUPTI", "no CUPTI"),
        ("The profiler reported an error: no memory", "no memory\nat all"),
    ]


@pytest.mark.parametrize("backend", ["gpu_version", "tpu_version"])
def test_a_device_that_left_no_trace(tmp_path: Path, backend: str) -> None:
    facts, host = PlaneBytes("/host:metadata"), PlaneBytes("/host:CPU")
    facts.fact(backend, "cuda 13000")
    host.line("python", [host.event("PjRtCApiLoadedExecutable::Execute", 0, 1_000)])
    assert codes(load(space(facts, host), tmp_path)) == {"no-device-events": 1}
    assert codes(load(space(host), tmp_path)) == {}


def test_launches_without_work(tmp_path: Path) -> None:
    host, gpu = PlaneBytes("/host:CPU"), PlaneBytes("/device:GPU:0")
    host.line("python", [host.event("cuLaunchKernel", 0, 1_000, correlation_id=1)])
    assert codes(load(space(host, gpu), tmp_path)) == {"no-device-events": 1}


def test_it_is_told_by_content() -> None:
    host = PlaneBytes("/host:CPU")
    host.line("t", [host.event("x")])
    assert matches(space(host), "any name")
    assert matches(space(hosts=["box"]) + space(host), "any name")
    assert not matches(b"", "host.xplane.pb")
    assert not matches(b"{}", "host.xplane.pb")
    assert not matches(b"\x0a\x05hello world, not a plane", "any name")
    assert not matches(b"\x0a\x00\x00", "any name")
    json = b'\n{"traceEvents": [' + b'{"ph": "X", "ts": 1},' * 40 + b"{}]}"
    assert not matches(json, "any name")
    small = PlaneBytes("/host:CPU" + "x" * 110)
    assert space(small)[:2] == b"\n{"
    assert matches(space(small, host), "any name")


def test_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(StepscopeError, match="holds no planes"):
        load(b"\x22\x00", tmp_path)
