"""Memory snapshots: exact rows, totals counted from the end, odd and cut files."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stepscope.errors import UnreadableFile
from stepscope.formats import read
from stepscope.formats.source import Source
from stepscope.trace.trace import Trace
from tests.builders.snapshots import MIB, Job, in_model, script, training


def opened(value: Any, folder: Path) -> Trace:
    """The trace of this value, pickled."""
    path = folder / "snapshot.pickle"
    path.write_bytes(pickle.dumps(value))
    return read(Source(str(path)))


def test_history_and_state(tmp_path: Path) -> None:
    job = Job()
    first = job.take(1000, script(3))
    job.take(2000, script(4))
    job.free(first)
    trace = opened(job.snapshot(), tmp_path)
    assert trace.info.format == "memory_snapshot"
    rows = trace.memory.select("time_ns", "bytes", "requested", "total_allocated", "action").rows()
    assert rows == [
        (0, 1024, 1000, 1024, "alloc"),
        (10_000, 2048, 2000, 3072, "alloc"),
        (30_000, -1024, 1000, 2048, "free_completed"),
    ]
    assert trace.blocks.select("bytes", "requested", "time_ns").rows() == [(2048, 2000, 10_000)]
    (stack,) = trace.blocks["stack"]
    assert trace.frames.filter(pl.col("stack") == stack).select("file", "line").rows() == [
        ("/home/me/train.py", 4)
    ]


def test_memory_from_before_the_history_is_in_the_totals(tmp_path: Path) -> None:
    job = Job()
    job.take(MIB, script(3))
    job.events.clear()
    job.take(MIB, script(4))
    assert opened(job.snapshot(), tmp_path).memory["total_allocated"].to_list() == [2 * MIB]


def test_a_failure_is_an_event_with_its_request(tmp_path: Path) -> None:
    job = training(2)
    job.fail(123, in_model(21, script(10)))
    trace = opened(job.snapshot(), tmp_path)
    assert trace.info.capture_options["out_of_memory"][0]["asked"] == 123
    assert "out of memory" in trace.events["name"].cast(pl.String).to_list()


def test_annotations_become_spans(tmp_path: Path) -> None:
    job = training(2)
    value = job.snapshot()
    value["external_annotations"] = [
        {"stage": "START", "name": "step", "device": 0, "time_us": job.time - 50},
        {"stage": "END", "name": "step", "device": 0, "time_us": job.time},
    ]
    events = opened(value, tmp_path).events.filter(pl.col("name") == "step")
    assert events["dur_ns"].to_list() == [50_000]


def test_segments_alone(tmp_path: Path) -> None:
    trace = opened(training(2).snapshot()["segments"], tmp_path)
    assert len(trace.blocks) == 12
    assert trace.problems["code"].to_list() == ["no-history"]


@pytest.mark.parametrize(
    "change",
    [
        {"addr": -1},
        {"addr": 2**70},
        {"size": "many"},
        {"time_us": None},
        {"stream": 1.5},
        {"frames": 7},
        {"frames": [7, None, {}]},
        {"frames": [{"name": "\ud800", "filename": "\ud800", "line": 1}]},
        {"action": "something new"},
    ],
)
def test_an_odd_event_costs_no_other(tmp_path: Path, change: dict[str, Any]) -> None:
    job = training(3)
    value = job.snapshot()
    value["device_traces"][0][5] = {**value["device_traces"][0][5], **change}
    assert len(opened(value, tmp_path).memory) >= len(opened(job.snapshot(), tmp_path).memory) - 1


def test_entries_that_are_none_are_counted(tmp_path: Path) -> None:
    value = training(2).snapshot()
    value["device_traces"][0] += [7, None, {}]
    value["segments"] += [[], {"address": 1, "blocks": [3]}]
    trace = opened(value, tmp_path)
    assert trace.problems.filter(pl.col("code") == "damaged-events")["count"].to_list() == [5]


def test_a_cut_file_is_refused_with_the_place(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(training(4).snapshot())[:2000])
    with pytest.raises(UnreadableFile, match="cut short: the pickle ends after 2,000 bytes"):
        read(Source(str(path)))


def test_other_pickles_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="it holds segments, other"):
        opened({"segments": 7, "other": 1}, tmp_path)
    with pytest.raises(UnreadableFile, match="nothing was allocated yet"):
        opened({"segments": [], "device_traces": [[]]}, tmp_path)
