"""Kernels of every profile of both corpora: their precision is known, graphs own their work, devices have their peaks."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import polars as pl
import pytest

import stepscope
from stepscope.analysis.kernels.calls import kernel_calls
from stepscope.analysis.kernels.device_peaks import peaks
from stepscope.analysis.ops.calls import op_calls
from stepscope.analysis.ops.graph_calls import graphs_table
from stepscope.analysis.serving.executions import executions, phases_table
from stepscope.analysis.serving.workload import workload
from stepscope.errors import UnreadableFile
from stepscope.profiles.overview import devices_of
from stepscope.trace.trace import Trace

CORPORA = [
    Path(os.environ[name]) for name in ("STEPSCOPE_CORPUS", "STEPSCOPE_CORPUS_2") if name in os.environ
]
SECOND = Path(os.environ.get("STEPSCOPE_CORPUS_2", "/nonexistent"))
MOST_UNKNOWN = 0.05
MOST_UNKNOWN_OF_A_FILE = 0.10
# XProf's JSON is the same recording as the XPlane file beside it, without the programs that have the types.
FILES = sorted(
    path
    for corpus in CORPORA
    for pattern in ("*.json.gz", "*.xplane.pb", "*.xplane.pb.gz")
    for path in corpus.rglob(pattern)
    if not path.name.endswith(".trace.json.gz") or path.name.endswith(".pt.trace.json.gz")
)
pytestmark = [pytest.mark.corpus, pytest.mark.skipif(not FILES, reason="there is no corpus")]
needs_second = pytest.mark.skipif(not SECOND.is_dir(), reason="STEPSCOPE_CORPUS_2 has no profiles")


@cache
def load(path: Path) -> Trace | None:
    """One file; None for formats that are not read."""
    try:
        return stepscope.load(path, cache=False).traces[0]
    except UnreadableFile:
        return None


def times(path: Path) -> tuple[int, int]:
    """Compute time of all kernels of the file, and of those of unknown precision."""
    trace = load(path)
    if trace is None:
        return 0, 0
    # All of the recording, whatever its steps are.
    tables = {
        **{name: trace.tables[name] for name in trace.tables},
        "events": trace.events.with_columns(step=pl.lit(None, dtype=pl.Int32)),
    }
    calls = kernel_calls(Trace.over(tables, trace.cold)).filter(
        (pl.col("role") != "collective").fill_null(True)
    )
    return int(calls["dur_ns"].sum()), int(calls.filter(pl.col("precision") == "unknown")["dur_ns"].sum())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_unknown_precision_of_a_file(path: Path) -> None:
    total, unknown = times(path)
    assert unknown <= MOST_UNKNOWN_OF_A_FILE * total


def test_unknown_precision_of_all() -> None:
    """Each file counts alike: one long recording would hide all the others."""
    shares = [unknown / total for total, unknown in map(times, FILES) if total]
    assert sum(shares) <= MOST_UNKNOWN * len(shares)


def second(name: str) -> Trace:
    """A file of the second corpus."""
    found = load(SECOND / name)
    assert found is not None
    return found


SGLANG = "serving/sglang_decode/sglang_Qwen3-8B_decode.json.gz"
VLLM = "serving/vllm_decode/graph_execution.json.gz"


@needs_second
@pytest.mark.parametrize(("name", "nodes"), [(SGLANG, 544), (VLLM, 421)])
def test_graphs_own_their_work_and_captures_name_it(name: str, nodes: int) -> None:
    trace = second(name)
    calls = op_calls(trace)
    (row,) = graphs_table(trace, calls).to_dicts()
    assert row["nodes"] == nodes
    assert row["named_ns"] == row["device_ns"]
    on_device = int(trace.events.filter(pl.col("kind").is_in(["kernel", "copy", "memset"]))["dur_ns"].sum())
    assert row["device_ns"] >= 0.95 * on_device
    assert 0.99 * on_device <= int(calls["device_self_ns"].sum()) <= on_device


@needs_second
@pytest.mark.parametrize(
    ("name", "engine", "expected"),
    [
        (SGLANG, "SGLang", ("decode", 1, 32.0, 32)),
        (VLLM, "vLLM", ("decode", 1, 32.0, 32)),
        ("serving/b200_vllm_eager.json.gz", "vLLM", ("prefill", 1, 1.0, 888)),
    ],
)
def test_serving(name: str, engine: str, expected: tuple[str, int, float, int]) -> None:
    trace = second(name)
    found = workload(trace)
    assert (found.kind, found.engine) == ("inference", engine)
    assert [row[:4] for row in phases_table(executions(trace)).rows()] == [expected]


@needs_second
def test_a_decode_step_lasts_as_long_as_its_work() -> None:
    """2.4 ms on the host launch 10.7 ms on the device."""
    (length,) = executions(second(VLLM))["dur_ns"]
    assert length == pytest.approx(10.7e6, rel=0.01)


@needs_second
@pytest.mark.parametrize(
    ("name", "count", "used"),
    [
        ("mi300_qwen_chat.json.gz", 1, 1),
        (SGLANG, 1, 1),
        (VLLM, 8, 1),
        ("rocm/jax_conv_mi300.xplane.pb.gz", 8, 8),
    ],
)
def test_amd_devices_are_one_and_have_a_peak(name: str, count: int, used: int) -> None:
    trace = second(name)
    (found,) = devices_of([trace])
    assert "MI300X" in found.name
    assert (found.count, found.used) == (count, used)
    numbers = set(trace.tracks.filter(pl.col("what") == "device")["device"])
    known = {device["id"]: peaks(device) for device in trace.info.devices}
    assert all(known.get(number) is not None for number in numbers)


@needs_second
def test_rocm_kernels_of_xplane_are_linked_to_their_launches() -> None:
    """ROCm names devices by the driver's number in calls; AMD's copy kernels are copies."""
    trace = second("rocm/jax_conv_mi300.xplane.pb.gz")
    kernels = trace.events.filter(pl.col("kind") == "kernel")["id"]
    linked = trace.links.filter(pl.col("why") == "launch")["to"]
    assert kernels.is_in(linked.implode()).mean() == pytest.approx(1.0, abs=0.02)
    assert (
        not trace.events.filter(pl.col("kind") == "kernel")["name"]
        .cast(pl.String)
        .str.contains("rocclr")
        .any()
    )


@needs_second
def test_formats_of_new_kernels() -> None:
    """MXFP4 and MXFP8 weights."""
    for name in (VLLM, "serving/b200_vllm_eager.json.gz"):
        assert "fp4" in set(kernel_calls(second(name))["precision"])
