"""Every XPlane of the corpus against a decoder that shares no code with ours, and against what is known of it."""

from __future__ import annotations

import os
from collections import Counter
from functools import cache
from pathlib import Path

import polars as pl
import pytest

from stepscope.trace.trace import Trace
from tests.corpus.naive_xplane import Space, decode, span_ns
from tests.corpus.recordings import trace_of

CORPUS = Path(os.environ.get("STEPSCOPE_CORPUS", "/nonexistent"))
FILES = sorted(str(path.relative_to(CORPUS)) for path in CORPUS.rglob("*.xplane.pb"))
pytestmark = [pytest.mark.corpus, pytest.mark.skipif(not FILES, reason="STEPSCOPE_CORPUS has no XPlane")]


def ours(name: str) -> Trace:
    """The file as we read it."""
    return trace_of(CORPUS / name)


@cache
def naive(name: str) -> Space:
    """The file as the plain decoder reads it."""
    return decode((CORPUS / name).read_bytes())


def known(part: str) -> Trace:
    """The one file of the corpus with this in its path."""
    (name,) = [name for name in FILES if part in name]
    return ours(name)


def own_events(trace: Trace) -> pl.DataFrame:
    return trace.events.filter(pl.col("source_category") != "derived")


def steps(trace: Trace) -> list[int]:
    return trace.events.filter(pl.col("role") == "step").sort("start_ns")["step"].to_list()


@pytest.mark.parametrize("name", FILES)
def test_events_per_plane_and_line(name: str) -> None:
    expected = Counter(
        {plane.name: sum(len(line.events) for line in plane.lines) for plane in naive(name).planes}
    )
    found = own_events(ours(name)).group_by("source_category").len()
    assert dict(found.rows()) == {plane: count for plane, count in expected.items() if count}
    lines = [len(line.events) for plane in naive(name).planes for line in plane.lines]
    by_track = dict(own_events(ours(name)).group_by("track").len().rows())
    assert [by_track.get(track, 0) for track in range(len(lines))] == lines


@pytest.mark.parametrize("name", FILES)
def test_every_name_start_and_duration(name: str) -> None:
    lines = [(plane, line) for plane in naive(name).planes for line in plane.lines]
    expected = Counter(
        (track, event.name, *span_ns(line, event))
        for track, (_, line) in enumerate(lines)
        for event in line.events
    )
    found = own_events(ours(name)).select("track", "name", "start_ns", "dur_ns")
    assert Counter(found.rows()) == expected
    assert found["dur_ns"].sum() == sum(row[3] * count for row, count in expected.items())


@pytest.mark.parametrize("name", FILES)
def test_every_stat(name: str) -> None:
    expected = Counter(
        (key, str(value))
        for plane in naive(name).planes
        for line in plane.lines
        for event in line.events
        for key, value in event.stats
    )
    found: Counter[tuple[str, str]] = Counter()
    for table, frame in ours(name).cold.items():
        if "key" in frame.columns:
            found.update((key, str(value)) for key, value in frame.select("key", "value").iter_rows())
        elif table in ("producers", "consumers"):
            columns = [column for column in frame.columns if column != "event"]
            found.update((column, str(value)) for column in columns for value in frame[column])
    assert found == expected


@pytest.mark.parametrize("name", FILES)
def test_nothing_is_wrong_with_the_files(name: str) -> None:
    severe = ours(name).problems.filter(pl.col("severity") != "info")["code"].to_list()
    assert severe == (["no-device-events"] if "jax_cupti_conflict" in name else [])


def test_jax_on_a_gpu() -> None:
    trace = known("h200/jax_gpu")
    assert steps(trace) == list(range(8))
    assert [(device["kind"], device["name"]) for device in trace.info.devices] == [("gpu", "NVIDIA H200")]
    assert trace.info.framework == "jax"
    kinds = dict(own_events(trace).group_by("kind").len().rows())
    assert (kinds["kernel"], kinds["copy"], kinds["memset"]) == (1376, 16, 144)
    launched = trace.links.filter(pl.col("why") == "launch")
    assert launched["to"].n_unique() == len(launched) == 1376 + 16 + 144
    assert len(trace.kernels.filter(pl.col("grid").is_not_null() & pl.col("occupancy").is_not_null())) == 1376
    make_batch = trace.events.filter(pl.col("name") == "make_batch")
    assert set(make_batch["kind"]) == {"annotation"}
    assert make_batch["step"].to_list() == list(range(8))
    assert trace.copies.filter(pl.col("direction") == "HtoD")["bytes"].to_list() == [8_388_608] * 8
    assert len(trace.modules) == 11


def test_jax_while_another_client_held_cupti() -> None:
    trace = known("h200/jax_cupti_conflict")
    assert steps(trace) == list(range(8))
    assert trace.tracks.filter(pl.col("what") == "device").is_empty()
    (problem,) = trace.problems.filter(pl.col("code") == "no-device-events").to_dicts()
    assert "gpu (cuda 13000)" in problem["detail"]


def test_tensorflow_custom_loop() -> None:
    trace = known("tensorflow/custom_loop")
    assert steps(trace) == list(range(10))
    assert trace.info.framework == "tensorflow"
    assert len(trace.links) == 17_540
    assert trace.ops["scope"].null_count() == 0
    assert "gradient_tape/sequential_1/conv2d_1_2/convolution/Conv2DBackpropFilter" in set(trace.ops["scope"])


def test_keras_callback() -> None:
    trace = known("tensorflow/keras_callback")
    assert steps(trace) == list(range(4, 15))
    assert trace.info.framework == "tensorflow"
