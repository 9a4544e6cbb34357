"""Exports of Nsight Systems with a few rows, as `nsys export --type sqlite` writes them."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

# Two processes with one GPU each; the second one has no name.
PIDS = (100, 200)
THREADS = tuple((1 << 48) | (pid << 24) | pid for pid in PIDS)
PROCESSES = tuple((1 << 48) | (pid << 24) for pid in PIDS)
STRINGS = {
    1: "void gemm<float>(float*, int)",
    2: "gemm",
    3: "cudaLaunchKernel_v7000",
    4: "cudaMemcpyAsync_v3020",
    5: "step 0",
    6: "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)",
    7: "poll",
    8: "python3",
    9: "Buffer flush",
    10: "cudaStreamSynchronize_v3020",
}
Rows = Sequence[Mapping[str, object]]


def kernel(start: int, end: int, name: int = 1, rank: int = 0, correlation: int = 1) -> dict[str, object]:
    return {
        "start": start, "end": end, "deviceId": rank, "contextId": 1, "streamId": 7, "correlationId": correlation,
        "globalPid": PROCESSES[rank], "demangledName": name, "shortName": 2, "gridX": 2, "gridY": 1, "gridZ": 1,
        "blockX": 128, "blockY": 1, "blockZ": 1, "registersPerThread": 32, "staticSharedMemory": 16,
        "dynamicSharedMemory": 48, "graphNodeId": None,
    }  # fmt: skip


def copy(start: int, end: int, correlation: int = 2) -> dict[str, object]:
    return {
        "start": start, "end": end, "deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": correlation,
        "globalPid": PROCESSES[0], "bytes": 4096, "copyKind": 1, "srcKind": 1, "dstKind": 2,
    }  # fmt: skip


def call(start: int, end: int, name: int = 3, rank: int = 0, correlation: int = 1) -> dict[str, object]:
    return {
        "start": start, "end": end, "globalTid": THREADS[rank], "correlationId": correlation, "nameId": name, "eventClass": 0,
    }  # fmt: skip


def span(start: int, end: int | None, text: str | None, rank: int = 0, **more: object) -> dict[str, object]:
    plain = {"start": start, "end": end, "eventType": 59, "globalTid": THREADS[rank], "text": text}
    return {**plain, "textId": None, "domainId": 0, **more}


def usual_tables() -> dict[str, Rows]:
    """Two steps of one GPU and one of another, with everything that the reader knows."""
    return {
        "StringIds": [{"id": number, "value": value} for number, value in STRINGS.items()],
        "CUPTI_ACTIVITY_KIND_KERNEL": [
            kernel(1_020, 1_080),
            kernel(2_020, 2_090, correlation=3),
            kernel(1_030, 1_060, name=6, rank=1),
        ],
        "CUPTI_ACTIVITY_KIND_MEMCPY": [copy(1_090, 1_095)],
        "CUPTI_ACTIVITY_KIND_MEMSET": [
            {**copy(1_096, 1_097), "memKind": 2, "bytes": 8, "correlationId": 9},
        ],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [
            call(1_010, 1_015),
            call(1_082, 1_085, 4, correlation=2),
            call(2_010, 2_015, correlation=3),
            call(1_011, 1_013, rank=1),
            call(2_016, 2_095, 10, correlation=4),
        ],
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": [
            {"start": 2_017, "end": 2_094, "deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": 4, "globalPid": PROCESSES[0], "syncType": 3},
        ],
        "CUPTI_ACTIVITY_KIND_OVERHEAD": [{"start": 2_100, "end": 2_110, "globalTid": THREADS[0], "nameId": 9}],
        "OSRT_API": [{"start": 1_096, "end": 1_099, "globalTid": THREADS[0], "nameId": 7}],
        "NVTX_EVENTS": [
            span(1_000, 1_100, None, textId=5),
            span(2_000, 2_100, "step 1"),
            span(1_005, 1_018, "aten::mm, seq = 4, op_id = 77, sizes = [[2, 3], [3, 4]], input_op_ids = [(1,0)]"),
            span(1_002, 2_050, "prefetch", eventType=60),
            span(1_003, None, "epoch", eventType=60),
            span(1_050, None, "checkpoint", eventType=34),
            span(1_020, 1_030, "ncclSend", rank=1, domainId=1),
            {**span(0, None, "NCCL", rank=1, domainId=1), "eventType": 75},
        ],
        "PROCESSES": [{"globalPid": PROCESSES[0], "pid": PIDS[0], "name": "train"}],
        "ThreadNames": [{"nameId": 8, "globalTid": THREADS[0]}],
        "META_DATA_EXPORT": [{"name": "EXPORT_SCHEMA_VERSION", "value": "3.25.0"}],
        "TARGET_INFO_SYSTEM_ENV": [{"name": "Hostname", "value": "node1"}, {"name": "DeviceEnvironment", "value": "SECRET=1"}],
        "TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": 1_700_000_000_000_000_000, "systemClockNs": 500}],
        "TARGET_INFO_GPU": [{"id": number, "name": "NVIDIA H100", "smCount": 132, "computeMajor": 9, "computeMinor": 0} for number in (0, 1)],
    }  # fmt: skip


def write_export(path: Path, tables: Mapping[str, Rows] | None = None) -> Path:
    """The database at the path; columns are those of the first row."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as database:
        for name, rows in (usual_tables() if tables is None else tables).items():
            columns = list(rows[0]) if rows else ["start", "end"]
            database.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
            places = ", ".join("?" * len(columns))
            database.executemany(
                f"INSERT INTO {name} VALUES ({places})", [[row[each] for each in columns] for row in rows]
            )
        database.commit()
    return path
