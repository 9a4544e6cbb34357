"""Tracks of Chrome trace JSON: processes, threads and streams by the names in metadata, and which of them are devices."""

from __future__ import annotations

import re
from dataclasses import field
from typing import Any

import polars as pl

from stepscope.formats.chrome.scan.columns import Identity, JsonEvents
from stepscope.lazy import dataclass
from stepscope.trace.schema import TABLES

_DEVICE = re.compile(r"/(?:device:)?(GPU|TPU|CUSTOM|XPU)[:_](\d{1,9})", re.IGNORECASE)
_KINDS = {"gpu": "gpu", "tpu": "tpu", "xpu": "xpu"}
# The work itself, best account first. XProf adds lines that repeat the streams; TensorFlow 1 adds their sums.
_ACCOUNTS = (
    re.compile(r"stream ?#?:?\d", re.IGNORECASE),
    re.compile(r"stream|/memcpy", re.IGNORECASE),
    re.compile(r"XLA Ops$"),
)
# TensorFlow 1 calls the executor's own times, which pass on the host, by the device that they are for.
_EXECUTOR = re.compile(r"(GPU|TPU|CUSTOM|XPU):\d+ (Compute|Tensors)$", re.IGNORECASE)
_STREAM_NUMBER = re.compile(r"stream ?#?:?(\d{1,18})(?!\d)", re.IGNORECASE)


@dataclass
class Names:
    """What metadata events say of processes and threads."""

    processes: dict[Identity, str] = field(default_factory=dict)
    labels: dict[Identity, str] = field(default_factory=dict)
    threads: dict[tuple[Identity, Identity], str] = field(default_factory=dict)

    @classmethod
    def of(cls, found: JsonEvents) -> Names:
        """The last name given wins, as it does in trace viewers."""
        names = cls()
        for name, pid, tid, args in found.metadata:
            if name == "process_name" and "name" in args:
                names.processes[pid] = str(args["name"])
            elif name == "process_labels" and "labels" in args:
                names.labels[pid] = str(args["labels"])
            elif name == "thread_name" and "name" in args:
                names.threads[pid, tid] = str(args["name"])
        return names


class TrackTable:
    """Numbers tracks as they are asked for; those of the scan keep their numbers."""

    def __init__(self, found: JsonEvents) -> None:
        self.names = Names.of(found)
        self.scanned = found.tracks
        self._rows: list[dict[str, Any]] = [
            self._host(number, pid, tid) for number, (pid, tid) in enumerate(found.tracks)
        ]

    def _host(self, number: int, pid: Identity, tid: Identity) -> dict[str, Any]:
        return {
            "id": number,
            "process": self.names.processes.get(pid),
            "thread": self.names.threads.get((pid, tid)),
            "stream": None,
            "device": None,
            "device_kind": "cpu",
            "what": "host",
            "pid": None if pid is None else str(pid),
            "tid": None if tid is None else str(tid),
        }

    def set(self, number: int, **values: Any) -> None:
        """Say more of a track."""
        self._rows[number].update(values)

    def add(self, like: int, **values: Any) -> int:
        """Another track beside an existing one."""
        number = len(self._rows)
        self._rows.append(self._rows[like] | {"id": number} | values)
        return number

    def frame(self) -> pl.DataFrame:
        """The `tracks` table."""
        return pl.DataFrame(self._rows, schema=TABLES["tracks"])


@dataclass
class DeviceTracks:
    """Tracks of devices: with the work itself, and with what is only laid over it."""

    work: list[int] = field(default_factory=list)
    laid_over: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class _Candidate:
    track: int
    kind: str
    device: int
    account: int
    stream: int | None


def mark_devices(table: TrackTable) -> DeviceTracks:
    """Find the devices and say so in the table. Of several accounts of one device's work, the best one counts."""
    candidates = [found for number in range(len(table.scanned)) if (found := _candidate(table, number))]
    best: dict[tuple[str, int], int] = {}
    for one in candidates:
        key = (one.kind, one.device)
        best[key] = min(one.account, best.get(key, one.account))
    tracks = DeviceTracks()
    for one in candidates:
        is_work = one.account == best[one.kind, one.device] < len(_ACCOUNTS)
        (tracks.work if is_work else tracks.laid_over).append(one.track)
        table.set(
            one.track,
            what="device" if is_work else "derived",
            device=one.device,
            device_kind=one.kind,
            stream=one.stream,
        )
    return tracks


def _candidate(table: TrackTable, number: int) -> _Candidate | None:
    pid, tid = table.scanned[number]
    process = table.names.processes.get(pid) or ""
    found = _DEVICE.search(process)
    if not found or _EXECUTOR.search(process):
        return None
    label = table.names.threads.get((pid, tid)) or process
    account = next((at for at, shape in enumerate(_ACCOUNTS) if shape.search(label)), len(_ACCOUNTS))
    stream = _STREAM_NUMBER.search(label)
    kind = _KINDS.get(found[1].lower(), "other")
    return _Candidate(number, kind, int(found[2]), account, int(stream[1]) if stream else None)
