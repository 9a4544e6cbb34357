"""Repeated traces keep the text of the original, continue its steps and never join the ids of two copies."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from benchmarks.repeat import repeat

TRACE = """{
  "schemaVersion": 1,
  "traceEvents": [
  {
    "ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "pid": 1, "tid": 1,
    "ts": 3843044347015.208, "dur": 10.500, "args": {"External id": 7, "Record function id": 0, "Ev Idx": 0}
  },
  {
    "ph": "X", "cat": "kernel", "name": "100% \\"ts\\": 5", "pid": 0, "tid": 7,
    "ts": 3843044347020.001, "dur": 1.250, "args": {"correlation": 9, "stream": 7}
  },
  {
    "ph": "s", "id": 9, "pid": 1, "tid": 1, "ts": 3843044347016, "cat": "ac2g", "name": "ac2g"
  },
  {
    "name": "process_name", "ph": "M", "ts": 3843044347015.208, "pid": 1, "tid": 0, "args": {"name": "python"}
  }
  ],
  "traceName": "x.json"
}
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A small trace on disk."""
    path = tmp_path / "a.pt.trace.json"
    path.write_text(TRACE)
    return path


def repeated(source: Path, at_least: int) -> list[dict[str, Any]]:
    """The events of the repeated trace, with times as exact decimals."""
    target = source.with_name("b.json")
    count = repeat(source, target, at_least)
    events: list[dict[str, Any]] = json.loads(target.read_text(), parse_float=Decimal)["traceEvents"]
    assert len(events) == count >= at_least
    return events


def test_the_first_copy_is_the_original(source: Path) -> None:
    assert repeated(source, 1) == json.loads(TRACE, parse_float=Decimal)["traceEvents"]


def test_times_shift_by_whole_microseconds_and_stay_exact(source: Path) -> None:
    events = repeated(source, 7)
    assert [str(event["ts"]) for event in events] == [
        "3843044347015.208",
        "3843044347020.001",
        "3843044347016",
        "3843044347027.208",
        "3843044347032.001",
        "3843044347028",
        "3843044347015.208",
    ]


def test_steps_go_on_and_ids_stay_apart(source: Path) -> None:
    step, kernel, flow, step_again, kernel_again, flow_again, metadata = repeated(source, 7)
    assert [step["name"], step_again["name"]] == ["ProfilerStep#3", "ProfilerStep#4"]
    assert step_again["args"] == {"External id": 17, "Record function id": 0, "Ev Idx": 10}
    assert kernel_again["args"] == {"correlation": 19, "stream": 7}
    assert kernel_again["name"] == kernel["name"] == '100% "ts": 5'
    assert [flow["id"], flow_again["id"]] == [9, 19]
    assert metadata["ph"] == "M"


def test_what_is_no_trace_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"nodes": []}')
    with pytest.raises(SystemExit, match="no Kineto trace"):
        repeat(path, tmp_path / "b.json", 1)
