"""A bad row costs that row, and a problem counts it: never a file, never a section, never all the time there is."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pytest

from benchmarks.fuzz import made_torch, made_xla
from benchmarks.fuzz.messages import Field, split
from stepscope.analysis.account.host_timeline import Timeline
from stepscope.analysis.steps import infer
from stepscope.analysis.steps.calls import Calls
from stepscope.trace.trace import Trace
from tests.pipeline.profiles import counts, reported, torch_with
from tests.sample import pairs

pytestmark = pytest.mark.thorough

MANY = 20_000
PROGRAM = made_xla.hlo()


@cache
def list_rocm_grids() -> list[object]:
    """Of the kernels of the whole recording."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        return [row.grid for row in reported(Path(folder), made_torch.files(rocm=True), patch).kernels.rows]


@pytest.mark.parametrize("place", [b'"0x55d0"', b'"kernel": "Cijk', b'"hipMemcpyAsync"', b'"262144"'])
def test_a_byte_of_no_text_in_a_rocm_launch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: bytes
) -> None:
    ((name, data),) = made_torch.files(rocm=True).items()
    at = data.index(place) + len(place) - 2
    spoilt = reported(tmp_path / "bad", {name: data[:at] + b"\xff" + data[at + 1 :]}, monkeypatch)
    assert counts(spoilt)["broken-text"] == 1
    assert [row.grid for row in spoilt.kernels.rows] == list_rocm_grids() != []


@pytest.mark.parametrize(
    ("category", "name"),
    pairs(["cpu_op", "kernel", "python_function", "user_annotation", "cuda_runtime"], ["gone", None]),
)
def test_an_event_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, category: str, name: object
) -> None:
    def spoil(events: list[dict[str, Any]]) -> None:
        chosen = [event for event in events if event.get("cat") == category][1]
        chosen.pop("name") if name == "gone" else chosen.update(name=name)

    found = reported(tmp_path, torch_with(spoil), monkeypatch)
    assert counts(found) == {"unnamed-events": 1}
    assert len(found.ops.rows) >= 7
    assert len(found.kernels.rows) >= 4


def spoilt_program(number: int, damage: bytes) -> bytes:
    """The made program, the first field of this instruction replaced by `damage`."""
    module, buffers = split(PROGRAM)
    fields = split(module.content)
    at = next(place for place, field in enumerate(fields) if field.number == 3)
    body = split(fields[at].content)
    place = [index for index, field in enumerate(body) if field.number == 2][number]
    parts = split(body[place].content)
    rest = b"".join(part.written() for part in parts[1:])
    body[place] = body[place]._replace(content=damage + rest)
    fields[at] = fields[at]._replace(content=b"".join(field.written() for field in body))
    return (
        module._replace(content=b"".join(field.written() for field in fields)).written() + buffers.written()
    )


@pytest.mark.parametrize(
    "damage",
    [b"", Field(1, 2, b"").written(), Field(9, 0, b"\x01").written() + Field(1, 2, b"x").written()],
    ids=["no name", "an empty name", "another field first"],
)
def test_a_damaged_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes) -> None:
    monkeypatch.setattr(made_xla, "hlo", lambda ranks=1: spoilt_program(2, damage))
    found = reported(tmp_path, made_xla.files(2), monkeypatch)
    assert counts(found)["damaged-program"] == 2  # ranks
    assert {"reduce", "dot_general", "fusion"} <= {row.name for row in found.ops.rows}
    assert len(found.kernels.rows) == 6
    assert found.device is not None
    assert found.coverage is not None


def test_as_many_processes_as_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten milliseconds for each of them would be minutes; asked are a few threads, whatever there is."""

    def multiply(events: list[dict[str, Any]]) -> None:
        events[:] = [
            {"ph": "X", "cat": "cpu_op", "name": f"op {at % 7}", "pid": at, "tid": at, "ts": at, "dur": 1}
            for at in range(MANY)
        ]

    asked: list[int] = []
    calls_of = infer._calls_of

    def counted(trace: Trace, events: pl.DataFrame, track: int) -> Calls:
        asked.append(track)
        return calls_of(trace, events, track)

    monkeypatch.setattr(infer, "_calls_of", counted)
    found = reported(tmp_path, torch_with(multiply), monkeypatch)
    assert found.profile.events == MANY
    assert 0 < len(asked) <= 20


def test_as_many_devices_as_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def multiply(events: list[dict[str, Any]]) -> None:
        events += [
            {"ph": "X", "cat": "kernel", "name": "k", "pid": at, "tid": 7, "ts": made_torch.BASE_US + at, "dur": 1,
             "args": {"device": at, "stream": 7}}
            for at in range(1, 2000)
        ]  # fmt: skip

    found = reported(tmp_path, torch_with(multiply, steps=2), monkeypatch)
    assert counts(found)["too-many-devices"] > 1900
    assert len({row.device for row in found.steps.rows}) <= 64


def test_as_many_threads_as_silences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every silence of the device asks every thread: 10^8 pairs would be all the memory there is."""

    def multiply(events: list[dict[str, Any]]) -> None:
        events[:] = [
            event
            for at in range(10_000)
            for event in (
                {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": at * 2000, "dur": 1,
                 "args": {"device": 0, "stream": 7}},
                {"ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": at, "ts": at * 2000 + 1000, "dur": 1},
            )
        ]  # fmt: skip

    cut = Timeline.cut
    rows: list[int] = []

    def counted(timeline: Timeline, spans: pl.DataFrame, longer_than: int = 0) -> pl.DataFrame:
        rows.append(len(spans))
        return cut(timeline, spans, longer_than)

    monkeypatch.setattr(Timeline, "cut", counted)
    found = reported(tmp_path, torch_with(multiply), monkeypatch)
    assert found.profile.events == 20_000
    assert 0 < max(rows) <= 3_000_000


@pytest.mark.parametrize(
    ("name", "value"), pairs(["rank", "world_size"], [-1, 2**31, 2**40, 10**30, 1e15, "99999999999"])
)
def test_a_job_of_impossible_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    document = made_torch.document(0, 2, steps=2)
    document["distributedInfo"][name] = value
    found = reported(tmp_path, {"one.pt.trace.json": json.dumps(document).encode()}, monkeypatch)
    assert found.profile.ranks == [0]
    assert len(found.ops.rows) >= 7


def test_halves_of_characters_in_the_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def spoil(events: list[dict[str, Any]]) -> None:
        for event in events:
            if event["ph"] == "M":
                event["args"]["name"] = "python \ud800"

    assert reported(tmp_path, torch_with(spoil), monkeypatch).ops.rows


@pytest.mark.parametrize(
    ("name", "value"),
    pairs(
        [
            "id",
            "totalGlobalMem",
            "numSms",
            "computeMajor",
            "maxThreadsPerMultiprocessor",
            "regsPerMultiprocessor",
        ],
        ["[memory]", [], {}, -1, True, 2**60],
    ),
)
def test_a_device_of_impossible_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    document = made_torch.document(steps=2)
    document["deviceProperties"][0][name] = value
    found = reported(tmp_path, {"one.pt.trace.json": json.dumps(document).encode()}, monkeypatch)
    assert len(found.kernels.rows) == 4
    assert name == "id" or counts(found)["bad-header"] == 1
