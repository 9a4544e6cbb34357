"""An export of Nsight Systems as tables: what each row becomes."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import stepscope
from stepscope.formats import read
from stepscope.formats.source import Source
from stepscope.trace.trace import Trace
from tests.builders.nsys import THREADS, usual_tables, write_export


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return read(Source(str(write_export(tmp_path_factory.mktemp("nsys") / "a.sqlite"))))


GOLDEN = """
GPU 0             stream 7                        device   Memcpy HtoD (Pinned -> Device)  copy        90   5
GPU 0             stream 7                        device   Memset (Device)                 memset      96   1
GPU 0             stream 7                        device   void gemm<float>(float*, int)   kernel      20   60
GPU 0             stream 7                        device   void gemm<float>(float*, int)   kernel      1020 70
GPU 0             stream 7 (waits)                derived  Stream Sync                     sync        1017 77
GPU 1             stream 7                        device   ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>) kernel 30 30
train (100)       python3 100                     host     aten::mm                        op          5    13
train (100)       python3 100                     host     checkpoint                      instant     50   0
train (100)       python3 100                     host     cudaLaunchKernel                runtime     10   5
train (100)       python3 100                     host     cudaLaunchKernel                runtime     1010 5
train (100)       python3 100                     host     cudaMemcpyAsync                 runtime     82   3
train (100)       python3 100                     host     cudaStreamSynchronize           runtime     1016 79
train (100)       python3 100                     host     poll                            span        96   3
train (100)       python3 100                     host     step 0                          annotation  0    100
train (100)       python3 100                     host     step 1                          annotation  1000 100
train (100)       python3 100 (profiler)          derived  Buffer flush                    overhead    1100 10
train (100)       python3 100 (start/end ranges)  derived  prefetch                        annotation  2    1048
train (100)       python3 100 (start/end ranges) (lane 2) derived epoch                    annotation  3    1107
200               thread 200                      host     cudaLaunchKernel                runtime     11   2
200               thread 200                      host     ncclSend                        annotation  20   10
"""


def list_events(trace: Trace) -> list[str]:
    rows = trace.events.join(trace.tracks, left_on="track", right_on="id")
    rows = rows.select("process", "thread", "what", "name", "kind", "start_ns", "dur_ns").cast(pl.String)
    return sorted(" ".join(" ".join(row).split()) for row in rows.iter_rows())


def test_every_row_is_an_event(trace: Trace) -> None:
    assert list_events(trace) == sorted(" ".join(line.split()) for line in GOLDEN.strip().splitlines())


def test_details_are_in_the_tables(trace: Trace) -> None:
    assert trace.kernels["grid"].to_list() == [[2, 1, 1]] * 3
    assert trace.kernels["shared_bytes"].to_list() == [64] * 3
    assert trace.copies.select(pl.col("direction", "source", "target").cast(pl.String)).rows() == [
        ("HtoD", "Pinned", "Device"),
        (None, None, "Device"),
    ]
    assert trace.copies["bytes"].to_list() == [4096, 8]
    assert trace.ops.select(pl.col("shapes").cast(pl.String), "sequence").rows() == [("[[2, 3], [3, 4]]", 4)]


def test_launches_stay_within_their_process(trace: Trace) -> None:
    """Both processes have a call with correlation id 1."""
    names = trace.events.join(trace.tracks, left_on="track", right_on="id").sort("id")["process"].to_list()
    found = [(names[a], names[b]) for a, b in trace.links.select("from", "to").iter_rows()]
    assert sorted(found) == [("200", "GPU 1"), *[("train (100)", "GPU 0")] * 4]


def test_what_is_known_of_the_recording(trace: Trace) -> None:
    info = trace.info
    assert (info.format, info.host, info.framework) == ("nsys", "node1", "pytorch")
    assert info.base_unix_ns == 1_700_000_000_000_000_500
    assert info.devices[1] == {
        "id": 1, "numSms": 132, "computeMajor": 9, "computeMinor": 0, "name": "NVIDIA H100",
    }  # fmt: skip
    assert "SECRET" not in str(info)
    assert [row["code"] for row in trace.problems.to_dicts()] == ["unfinished-events"]


def test_a_packed_export(tmp_path: Path, trace: Trace) -> None:
    plain = write_export(tmp_path / "b.sqlite")
    packed = tmp_path / "c.sqlite.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert list_events(read(Source(str(packed)))) == list_events(trace)


def test_it_is_found_in_a_folder_and_reported(tmp_path: Path) -> None:
    write_export(tmp_path / "run" / "profile.sqlite")
    report = stepscope.report(tmp_path, sections=["steps"])
    assert (report.steps.source, report.steps.name) == ("annotation", "step")


def change(table: str, row: int, **values: object) -> dict[str, Any]:
    tables: dict[str, Any] = usual_tables()
    tables[table] = [{**each, **values} if at == row else each for at, each in enumerate(tables[table])]
    return tables


def test_a_device_number_of_a_process_is_its_gpu(tmp_path: Path) -> None:
    """Each process counts from 0 where CUDA_VISIBLE_DEVICES gives it one GPU."""
    tables = change("CUPTI_ACTIVITY_KIND_KERNEL", 2, deviceId=0)
    tables["TARGET_INFO_CUDA_DEVICE"] = [
        {"gpuId": 0, "cudaId": 0, "pid": 100},
        {"gpuId": 1, "cudaId": 0, "pid": 200},
    ]
    trace = read(Source(str(write_export(tmp_path / "a.sqlite", tables))))
    assert set(trace.tracks["device"].drop_nulls()) == {0, 1}


def test_names_of_threads_come_from_the_file(trace: Trace) -> None:
    assert str(THREADS[0] & 0xFFFFFF) in trace.tracks["tid"].to_list()
