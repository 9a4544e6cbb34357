"""A trace: its tables, what is known of it as a whole, and what the file said of one event."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from stepscope.trace.trace import Trace, TraceInfo
from tests.builders.tables import trace


def test_tables_are_attributes() -> None:
    found = trace("track  start  dur  name\na  0  1  x")
    assert found.events is found.tables["events"]
    with pytest.raises(AttributeError, match="event"):
        _ = found.event


def test_what_is_known_of_the_whole() -> None:
    info = TraceInfo(
        path="/a", format="kineto", framework="pytorch", rank=3, world_size=8, host="n", base_unix_ns=2**61,
        clock_offset_ns=-5, clock_drift=1e-6, devices=[{"name": "H200 <é>"}], versions={"cuda": 13}, capture_options={},
    )  # fmt: skip
    assert TraceInfo.from_frame(info.frame()) == info
    assert TraceInfo.from_frame(TraceInfo().frame()) == TraceInfo()


def cold(**frames: dict[str, list[Any]]) -> Trace:
    return Trace({}, {name: pl.DataFrame(frame) for name, frame in frames.items()})


def test_arguments_come_from_all_frames() -> None:
    found = cold(
        columns={"event": [1, 2], "x": [5, None], "y": ["a", "b"]},
        rest={"event": [1, 1], "json": [b'{"k": [1, null]}', b'{"z": 2}']},
        pairs={"event": [2, 2], "key": ["p", "q"], "value": [1, 2]},
    )
    assert found.arguments(1) == {"x": 5, "y": "a", "k": [1, None], "z": 2}
    assert found.arguments(2) == {"y": "b", "p": 1, "q": 2}
    assert found.arguments(3) == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'{"a": N/A, "b": NaN, "c": [inf, -Infinity, 1]}', {"a": None, "b": None, "c": [None, None, 1]}),
        (b'{"a": "N/A, NaN", "b": 1}', {"a": "N/A, NaN", "b": 1}),
        (b'{"a": "caf\xe9"}', {"a": "caf�"}),
        (b'{"a": "tab\there"}', {"a": "tab\there"}),
        (b"[1, 2]", {"args": [1, 2]}),
        (b'"text"', {"args": "text"}),
        (b'{"a": }', {"args": '{"a": }'}),
        (b"[" * 5_000, {"args": "[" * 5_000}),
        ('{"a": 1}', {"a": 1}),
        ('{"a": nan}', {"a": None}),
        (b'{"big": 123456789012345678901234567890}', {"big": 123456789012345678901234567890}),
    ],
)
def test_arguments_that_writers_got_wrong(text: Any, expected: dict[str, Any]) -> None:
    assert cold(rest={"event": [0], "json": [text]}).arguments(0) == expected
