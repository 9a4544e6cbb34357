"""Which tracks of a Chrome trace are devices, told by the names that metadata gives to processes and threads."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from stepscope.formats.chrome.json_tracks import TrackTable

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
