"""XPlanes of TensorFlow on GPUs, JAX on AMD and JAX on TPUs, event by event against a decoder that shares no code with ours."""

from __future__ import annotations

import gzip
import os
from collections import Counter
from functools import cache
from pathlib import Path

import msgspec
import polars as pl
import pytest

from stepscope.trace.trace import Trace
from tests.corpus.naive_xplane import Space, decode, rounded_ns, span_ns
from tests.corpus.recordings import context_of, trace_of

CORPUS = Path(os.environ.get("STEPSCOPE_CORPUS_2", "/nonexistent"))
FILES = sorted(str(path.relative_to(CORPUS)) for path in CORPUS.rglob("*.xplane.pb.gz"))
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not FILES, reason="STEPSCOPE_CORPUS_2 has no XPlane"),
]
TPU, V100 = "tpu/v6e_host_offload.xplane.pb.gz", "tensorflow_gpu/bert_8xV100.xplane.pb.gz"
XPROF = Path(__file__).parent.parent / "fixtures" / "agreement" / "xprof_tpu.json"


@cache
def naive(name: str) -> Space:
    """The file as the plain decoder reads it."""
    return decode(gzip.decompress((CORPUS / name).read_bytes()))


def own_events(name: str) -> pl.DataFrame:
    return trace_of(CORPUS / name).events.filter(pl.col("source_category") != "derived")


@pytest.mark.parametrize("name", [name for name in FILES if name != TPU])
def test_every_event(name: str) -> None:
    lines = [(plane.name, line) for plane in naive(name).planes for line in plane.lines]
    absolute = [line.timestamp_ns for _, line in lines if line.timestamp_ns >= 10**17]
    base = min(absolute, default=0)
    expected: Counter[tuple[object, ...]] = Counter()
    for plane, line in lines:
        for event in line.events:
            start, duration = span_ns(line, event)
            expected[plane, event.name, start - base, duration] += 1
    found = own_events(name).select("source_category", "name", "start_ns", "dur_ns")
    assert Counter(found.rows()) == expected


def test_every_event_of_a_tpu() -> None:
    """Instructions last as long as the clock of their device says; the host's events are where they were."""
    expected: Counter[tuple[object, ...]] = Counter()
    for plane in naive(TPU).planes:
        for line in plane.lines:
            for event in line.events:
                stats = dict(event.stats)
                if "device_offset_ps" in stats:
                    begin = stats["device_offset_ps"]
                    duration = rounded_ns(begin + stats["device_duration_ps"]) - rounded_ns(begin)
                    expected[plane.name, event.name, duration] += 1
                elif plane.name.startswith("/host:"):
                    expected.update([(plane.name, event.name, *span_ns(line, event))])
                else:
                    expected[plane.name, event.name] += 1
    found: Counter[tuple[object, ...]] = Counter()
    core = set(trace_of(CORPUS / TPU).tracks.filter(pl.col("thread") == "XLA Ops")["id"])
    for plane, name, track, start, duration in (
        own_events(TPU).select("source_category", "name", "track", "start_ns", "dur_ns").iter_rows()
    ):
        key = (duration,) if track in core else (start, duration) if plane.startswith("/host:") else ()
        found.update([(plane, name, *key)])
    assert found == expected


@pytest.mark.parametrize("name", FILES)
def test_every_stat_of_every_event(name: str) -> None:
    expected = Counter(
        (key, str(value % 2**64 if key in ("_c", "_p") else value))
        for plane in naive(name).planes
        for line in plane.lines
        for event in line.events
        for key, value in event.stats
    )
    found: Counter[tuple[str, str]] = Counter()
    for table, frame in trace_of(CORPUS / name).cold.items():
        if "key" in frame.columns:
            found.update((key, str(value)) for key, value in frame.select("key", "value").iter_rows())
        elif table in ("producers", "consumers"):
            columns = [column for column in frame.columns if column != "event"]
            found.update((column, str(value)) for column in columns for value in frame[column])
    assert found == expected


def test_tensorflow_on_gpus() -> None:
    trace = trace_of(CORPUS / V100)
    assert trace.info.framework == "tensorflow"
    described = {
        (each["name"], each["core_count"], each["compute_cap_major"], each["memory_bandwidth"])
        for each in trace.info.devices
    }
    assert described == {("Tesla V100", 80, 7, 898_048_000_000)}
    assert len(trace.info.devices) == 8
    kernels = trace.events.filter(pl.col("kind") == "kernel")
    by_device = kernels.with_columns(device=trace.tracks["device"].gather(kernels["track"]))
    assert sorted(by_device.group_by("device").len()["len"]) == [665, 665]
    # The decoder's own sum, over the lines of streams.
    spans = [
        span_ns(line, event)[1]
        for plane in naive(V100).planes
        if plane.name.startswith("/device:GPU")
        for line in plane.lines
        if line.name.startswith("Stream")
        for event in line.events
        if any(key == "kernel_details" for key, _ in event.stats)
    ]
    assert (len(spans), sum(spans)) == (1330, kernels["dur_ns"].sum())
    launched = trace.links.filter(pl.col("why") == "launch")["to"]
    assert kernels["id"].is_in(launched.implode()).all()


def test_dropout_and_casts_are_nearly_all_device_time() -> None:
    calls = context_of(CORPUS / V100).op_calls
    by_op = dict(calls.group_by("name").agg(pl.col("device_self_ns").sum()).cast({"name": pl.String}).rows())
    chosen = sum(by_op[name] for name in ("RandomUniform", "GreaterEqual", "Mul", "Cast"))
    assert chosen > 0.99 * sum(by_op.values())


def on_cores(trace: Trace) -> pl.DataFrame:
    core = trace.tracks.filter(pl.col("thread") == "XLA Ops")["id"]
    return trace.events.filter(pl.col("track").is_in(core.implode()))


def test_a_tpu_has_its_steps_and_a_closed_account() -> None:
    found = context_of(CORPUS / TPU)
    windows = found.steps.windows
    assert dict(windows.group_by("device").len().rows()) == dict.fromkeys(range(4), 100)
    length = int((windows["end_ns"] - windows["start_ns"]).sum())
    assert int(found.account.parts["ns"].sum()) == length
    parts = dict(
        found.account.parts.group_by("part").agg(pl.col("ns").sum()).cast({"part": pl.String}).rows()
    )
    assert parts["copy"] / length == pytest.approx(0.97, abs=0.005)
    assert parts["compute"] / length == pytest.approx(0.03, abs=0.005)


def test_every_op_of_a_tpu_is_as_in_xprof() -> None:
    """Calls and time of each instruction, and the share of what waits for copies; XProf rounds nothing."""
    kept = msgspec.json.decode(XPROF.read_bytes())
    mine = (
        on_cores(trace_of(CORPUS / TPU))
        .group_by(pl.col("name").cast(pl.String))
        .agg(pl.len(), pl.col("dur_ns").sum())
    )
    found = {name: (calls, total) for name, calls, total in mine.iter_rows()}
    assert found.keys() == {row[0] for row in kept["rows"]}
    for name, _, calls, total_us, _, _ in kept["rows"]:
        assert found[name][0] == calls
        assert found[name][1] == pytest.approx(1_000 * total_us, abs=calls), name  # a nanosecond a call
    waiting = sum(total for name, (_, total) in found.items() if name.startswith("copy-done"))
    theirs = [row[3] for row in kept["rows"]]
    share = sum(row[3] for row in kept["rows"] if row[1] == "copy-done") / sum(theirs)
    assert share == pytest.approx(0.965, abs=5e-4)
    assert waiting / sum(total for _, total in found.values()) == pytest.approx(share, abs=1e-6)


def test_rates_of_a_tpu_are_as_in_xprof() -> None:
    """FLOP/s and bytes/s of each instruction, by the work that the file gives."""
    kept = msgspec.json.decode(XPROF.read_bytes())
    found = context_of(CORPUS / TPU)
    rows = found.op_calls.with_columns(instruction=found.trace.events["name"].gather(found.op_calls["event"]))
    sums = rows.group_by(pl.col("instruction").cast(pl.String)).agg(
        pl.col("flops", "bytes", "device_self_ns").sum()
    )
    mine = {name: (flops / ns, size / ns) for name, flops, size, ns in sums.iter_rows() if ns}
    for name, _, _, total_us, gflops, gigabytes in kept["rows"]:
        if name in mine and total_us > 1_000:  # in the steps; rounding to nanoseconds matters below
            assert mine[name][0] == pytest.approx(gflops, rel=1e-4), name
            assert mine[name][1] == pytest.approx(gigabytes * 1.073741824, rel=1e-4), name
