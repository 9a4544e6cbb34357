"""What an export says of the recording as a whole: times, devices, versions. Environment variables are never read."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.formats.nsys import FORMAT
from stepscope.formats.nsys.database import Database, read_values
from stepscope.trace.trace import TraceInfo

_SYSTEM = {"NvDriverVersion": "driver", "CudaDriverVersion": "cuda_driver_version"}
_GPU_NUMBERS = {
    "id": "id",
    "smCount": "numSms",
    "totalMemory": "totalGlobalMem",
    "memoryBandwidth": "memory_bandwidth",
    "computeMajor": "computeMajor",
    "computeMinor": "computeMinor",
    "threadsPerWarp": "warpSize",
}
_FARTHEST = 2**62


def make_info(database: Database, path: str, zero_ns: int, has_torch: bool) -> TraceInfo:
    """`zero_ns` is the time of the file that becomes 0."""
    system = read_values(database, "TARGET_INFO_SYSTEM_ENV", "name", "value")
    export = read_values(database, "META_DATA_EXPORT", "name", "value")
    versions: dict[str, Any] = {new: system[old] for old, new in _SYSTEM.items() if old in system}
    for key, name in (("EXPORT_PRODUCT_VERSION", "nsys"), ("EXPORT_SCHEMA_VERSION", "nsys_schema")):
        if key in export:
            versions[name] = export[key]
    return TraceInfo(
        path=path,
        format=FORMAT.name,
        framework="pytorch" if has_torch else None,
        host=system.get("Hostname"),
        base_unix_ns=_find_base(database, zero_ns),
        devices=_list_devices(database),
        versions=versions,
    )


def _find_base(database: Database, zero_ns: int) -> int:
    """The moment of `zero_ns`. Times count from the session's start, or from what its own clock showed then."""
    found = database.rows("TARGET_INFO_SESSION_START_TIME", ["utcEpochNs", "systemClockNs"])
    if found.is_empty() or found["utcEpochNs"][0] is None:
        return 0
    started, clock = found["utcEpochNs"][0], found["systemClockNs"][0] or 0
    moment = int(started + zero_ns - (clock if zero_ns >= clock else 0))
    return moment if 0 <= moment < _FARTHEST else 0


def _list_devices(database: Database) -> list[dict[str, Any]]:
    found = database.rows("TARGET_INFO_GPU", list(_GPU_NUMBERS), ["name"])
    rows = found.filter(pl.col("id").is_between(0, 2**31 - 1)).rename(_GPU_NUMBERS)
    return [
        {key: value for key, value in row.items() if value is not None} for row in rows.iter_rows(named=True)
    ]
