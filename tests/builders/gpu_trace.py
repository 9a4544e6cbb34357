"""Tiny traces of a device, written as a table: track, start, duration, kind and name of each event."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.trace.draft import Draft
from stepscope.trace.finish import finish
from stepscope.trace.trace import Trace, TraceInfo

H200 = {
    "id": 0,
    "name": "NVIDIA H200",
    "computeMajor": 9,
    "computeMinor": 0,
    "numSms": 132,
    "maxThreadsPerMultiprocessor": 2048,
    "regsPerMultiprocessor": 65536,
    "sharedMemPerMultiprocessor": 233472,
    "warpSize": 32,
    "totalGlobalMem": 150109880320,
}
_STREAMS = (7, 13)


def gpu_trace(table: str, device: dict[str, Any] = H200, **facts: dict[int, dict[str, Any]]) -> Trace:
    """Events of `host`, `stream 7` and `stream 13`, one each line; `cudaLaunchKernel -> 3` launches the fourth of them.

    `kernels`, `copies`, `collectives` and `ops` give more facts of events by their row.
    """
    rows, links = [], []
    for number, line in enumerate(filter(None, map(str.strip, table.splitlines()))):
        track, start, duration, kind, name = (cell.strip() for cell in line.split("|", 4))
        if "->" in name:
            name, target = (part.strip() for part in name.split("->"))
            links += [{"from": number, "to": int(to), "why": "launch"} for to in target.split(",")]
        rows.append(
            {
                "track": _track(track),
                "start_ns": int(start),
                "dur_ns": int(duration),
                "kind": kind,
                "name": name,
            }
        )
    kernels: dict[int, dict[str, Any]] = {
        i: {} for i, row in enumerate(rows) if row["kind"] == "kernel"
    } | facts.get("kernels", {})
    return finish(
        Draft(
            info=TraceInfo(format="kineto", framework="pytorch", devices=[device]),
            events=pl.DataFrame(rows).with_columns(pl.col("track").cast(pl.UInt32)),
            tracks=_tracks(),
            links=pl.DataFrame(links, schema={"from": pl.UInt32, "to": pl.UInt32, "why": pl.String}),
            kernels=_frame(kernels),
            copies=_frame(facts.get("copies", {})),
            collectives=_frame(facts.get("collectives", {})),
            ops=_frame(facts.get("ops", {})),
        )
    )


def _track(name: str) -> int:
    return 0 if name == "host" else 1 + _STREAMS.index(int(name.removeprefix("stream")))


def _tracks() -> pl.DataFrame:
    host = {
        "id": 0,
        "process": "python",
        "thread": "main",
        "stream": None,
        "device": None,
        "device_kind": "cpu",
        "what": "host",
    }
    streams = [
        {"id": 1 + at, "process": "GPU", "thread": f"stream {n}", "stream": n, "device": 0, "device_kind": "gpu", "what": "device"}
        for at, n in enumerate(_STREAMS)
    ]  # fmt: skip
    return pl.DataFrame([host, *streams])


def _frame(facts: dict[int, dict[str, Any]]) -> pl.DataFrame:
    rows = [{"event": event, **values} for event, values in facts.items()]
    return pl.DataFrame(rows, infer_schema_length=None) if rows else pl.DataFrame()
