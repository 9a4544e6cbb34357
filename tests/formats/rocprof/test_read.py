"""A recording of rocprofv3 as tables, and what damaged ones become."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import stepscope
from stepscope.errors import UnreadableFile
from stepscope.formats import read
from stepscope.formats.source import Source
from stepscope.trace.trace import Trace

GPU, CPU = 77, 70
KERNEL, HIP, MARKER, COPY = 1, 2, 3, 4
KINDS = [
    {"kind": "NONE", "operations": []},
    {"kind": "KERNEL_DISPATCH", "operations": ["NONE", "ENQUEUE", "COMPLETE"]},
    {"kind": "HIP_RUNTIME_API", "operations": ["hipLaunchKernel", "hipMemcpyAsync"]},
    {"kind": "MARKER_CORE_API", "operations": ["roctxRangePushA"]},
    {"kind": "MEMORY_COPY", "operations": ["MEMORY_COPY_NONE", "MEMORY_COPY_HOST_TO_DEVICE"]},
]


def record(kind: int, operation: int, start: int, end: int, correlation: int, **more: Any) -> dict[str, Any]:
    return {
        "size": 1, "kind": kind, "operation": operation, "thread_id": 5, "start_timestamp": start, "end_timestamp": end,
        "correlation_id": {"internal": correlation, "external": 0}, **more,
    }  # fmt: skip


def kernel(start: int, end: int, correlation: int, number: int = 8, queue: int = 16) -> dict[str, Any]:
    info = {
        "agent_id": {"handle": GPU}, "queue_id": {"handle": queue}, "kernel_id": number, "dispatch_id": 1, "group_segment_size": 256,
        "workgroup_size": {"x": 64, "y": 1, "z": 1}, "grid_size": {"x": 130, "y": 2, "z": 1},
    }  # fmt: skip
    return record(KERNEL, 2, start, end, correlation, dispatch_info=info, stream_id={"handle": 0})


def usual_tool() -> dict[str, Any]:
    """A step with two kernels that overlap on one queue, a copy, their calls and a marker."""
    return {
        "metadata": {"pid": 42, "node": {"hostname": "node1"}},
        "agents": [
            {"id": {"handle": CPU}, "type": 1, "name": "EPYC"},
            {"id": {"handle": GPU}, "type": 2, "product_name": "AMD Instinct MI350X", "cu_count": 256, "wave_front_size": 64},
        ],
        "strings": {"buffer_records": KINDS, "marker_api": [{"key": 30, "value": "step 0"}]},
        "kernel_symbols": [
            {"kernel_id": 8, "kernel_name": "_Z4gemm.kd", "formatted_kernel_name": "gemm(float*)", "arch_vgpr_count": 32},
            {"kernel_id": 9, "kernel_name": "add.kd", "formatted_kernel_name": "", "arch_vgpr_count": 16},
        ],
        "buffer_records": {
            "kernel_dispatch": [kernel(1_020, 1_080, 1), kernel(1_070, 1_090, 2, 9)],
            "hip_api": [record(HIP, 0, 1_010, 1_012, 1), record(HIP, 0, 1_013, 1_014, 2), record(HIP, 1, 1_015, 1_017, 3)],
            "marker_api": [record(MARKER, 0, 1_000, 1_100, 30)],
            "memory_copy": [record(COPY, 1, 1_091, 1_095, 3, src_agent_id={"handle": CPU}, dst_agent_id={"handle": GPU}, bytes=64)],
            "pc_sample_host_trap": [],
        },
    }  # fmt: skip


def write(path: Path, *tools: dict[str, Any]) -> Path:
    path.write_text(json.dumps({"rocprofiler-sdk-tool": list(tools)}))
    return path


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return read(Source(str(write(tmp_path / "42_results.json", usual_tool()))))


GOLDEN = """
GPU 0       copies          MEMORY_COPY_HOST_TO_DEVICE  copy        91  4
GPU 0       queue 16        gemm(float*)                kernel      20  60
GPU 0       queue 16 (lane 2) add                       kernel      70  20
process 42  thread 5        hipLaunchKernel             runtime     10  2
process 42  thread 5        hipLaunchKernel             runtime     13  1
process 42  thread 5        hipMemcpyAsync              runtime     15  2
process 42  thread 5        step 0                      annotation  0   100
"""


def test_every_record_is_an_event(trace: Trace) -> None:
    rows = trace.events.join(trace.tracks, left_on="track", right_on="id")
    rows = rows.select("process", "thread", "name", "kind", "start_ns", "dur_ns").cast(pl.String)
    found = sorted(" ".join(" ".join(row).split()) for row in rows.iter_rows())
    assert found == sorted(" ".join(line.split()) for line in GOLDEN.strip().splitlines())


def test_details_are_in_the_tables(trace: Trace) -> None:
    assert trace.kernels["grid"].to_list() == [[3, 2, 1]] * 2  # rocprofv3 counts threads, not blocks
    assert trace.kernels["registers"].to_list() == [32, 16]
    assert trace.copies.select("bytes", pl.col("direction").cast(pl.String)).rows() == [(64, "HtoD")]
    assert len(trace.links) == 3
    assert (trace.info.format, trace.info.host) == ("rocprof", "node1")
    assert trace.info.devices == [{"id": 0, "name": "AMD Instinct MI350X", "numSms": 256, "warpSize": 64}]


def test_it_is_found_in_a_folder(tmp_path: Path) -> None:
    write(tmp_path / "anything.json", usual_tool())
    assert stepscope.load(tmp_path).events.filter(kind="kernel").height == 2


def test_several_processes(tmp_path: Path) -> None:
    second = {**usual_tool(), "metadata": {"pid": 43}}
    trace = read(Source(str(write(tmp_path / "a_results.json", usual_tool(), second))))
    assert len(trace.links) == 6
    assert {"process 42", "process 43"} < set(trace.tracks["process"])


@pytest.mark.parametrize("part", ["metadata", "agents", "strings", "kernel_symbols"])
@pytest.mark.parametrize(
    "value", [None, 5, "x", [None, 5, {"id": 3}], {"buffer_records": 7, "marker_api": [4]}]
)
def test_any_part_may_be_missing_or_odd(tmp_path: Path, part: str, value: Any) -> None:
    tool = usual_tool()
    if value is None:
        del tool[part]
    else:
        tool[part] = value
    trace = read(Source(str(write(tmp_path / "a_results.json", tool))))
    assert trace.events.filter(kind="kernel").height == 2


def test_damaged_records_cost_themselves(tmp_path: Path) -> None:
    tool = usual_tool()
    odd: list[Any] = [
        7,
        None,
        "x",
        {"start_timestamp": "x"},
        {**kernel(5, 9, 1), "dispatch_info": [1]},
        kernel(9, 5, 1),
    ]
    tool["buffer_records"]["kernel_dispatch"] += odd
    trace = read(Source(str(write(tmp_path / "a_results.json", tool))))
    assert trace.events.filter(kind="kernel").height == 2
    (lost,) = trace.problems.to_dicts()
    assert (lost["code"], lost["count"]) == ("damaged-events", len(odd))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b'{"rocprofiler-sdk-tool": [{"metadata"', "cut or damaged"),
        (b'{"rocprofiler-sdk-tool": []}', "holds no events"),
        (b'{"rocprofiler-sdk-tool": 5}', "cut or damaged"),
        (b'{"rocprofiler-sdk-tool": ' + b"[" * 100_000, "cut or damaged"),
    ],
)
def test_one_message(tmp_path: Path, text: bytes, words: str) -> None:
    path = tmp_path / "a_results.json"
    path.write_bytes(text)
    with pytest.raises(UnreadableFile, match=words):
        read(Source(str(path)))
